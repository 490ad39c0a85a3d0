"""What a test gives to `publish run`."""

from __future__ import annotations

from pathlib import Path

# A training that saves the steps in STEPS.
TRAINING = """
for step in $STEPS; do
    mkdir -p "$DISPATCH_SAVES/checkpoint-$step"
    echo '{"global_step": '$step'}' >"$DISPATCH_SAVES/checkpoint-$step/trainer_state.json"
done
"""
# A program that says which signals it gets; SIGUSR2 is the last.
LISTENING = """
import os, signal
numbers = {1, 2, 10, 12, 15}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
os.write(1, b"ready\\n")
while (number := signal.sigwait(numbers)) != 12:
    os.write(1, b"%d\\n" % number)
"""


def run_line(root: Path, *flags: str) -> list[str | Path]:
    """The words before COMMAND."""
    return ["run", "-checkpoint", root, "-framework", "hf", "-interval", "20ms", *flags, "--"]


def published(root: Path) -> int:
    """How many publications there are."""
    return len(list((root / "pub").iterdir())) if (root / "pub").exists() else 0
