"""The installed program, run as a job script runs it: another process, in an environment of the test's own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PROGRAM = Path(sys.executable).with_name("publish")
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}


def publish(*arguments: str | Path) -> str:
    """Runs a verb that must succeed and say nothing on stderr; returns its stdout."""
    ended = subprocess.run(
        [PROGRAM, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


class Watch:
    """A running `publish watch`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def stop(self) -> str:
        """SIGTERM; returns what it printed since it started and was not read yet."""
        self.process.send_signal(signal.SIGTERM)
        rest, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return rest

    def line_with(self, text: str) -> str:
        """Reads its stdout up to the line that holds `text`. pytest's own time limit bounds the wait."""
        stdout: IO[str] | None = self.process.stdout
        assert stdout is not None
        for line in stdout:
            if text in line:
                return line
        raise AssertionError(f"watch ended without a line that holds {text!r}")


@contextmanager
def watching(root: Path, framework: str, epoch: int, attempt: str, *flags: str) -> Iterator[Watch]:
    """`publish watch` told by the scheduler's variables which execution it belongs to."""
    command: list[str | Path] = [
        PROGRAM,
        "watch",
        "-checkpoint",
        root,
        "-framework",
        framework,
        "-interval",
        "100ms",
        *flags,
    ]
    scheduler = {"DISPATCH_EPOCH": str(epoch), "DISPATCH_ATTEMPT": attempt}
    with subprocess.Popen(command, env=ENVIRONMENT | scheduler, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Watch(process)
        finally:
            process.kill()
