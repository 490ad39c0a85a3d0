"""`make fuzz MINUTES=n`: atheris on each target for so long, from the corpus of the tests on.

What it finds is written to .fuzz/; a file moved from there to tests/fuzz/corpus/TARGET/ is replayed by the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
_FOUND = Path(".fuzz")


def fuzz(name: str, seconds: float) -> None:
    """Does not return: libFuzzer ends the process."""
    import atheris  # only in .venv-fuzz

    with atheris.instrument_imports(include=["publish", "json"]):
        from tests.fuzz.targets import TARGETS
    grown = _FOUND / name / "grown"
    grown.mkdir(parents=True, exist_ok=True)
    limits = ["-max_len=65536", "-timeout=10", "-rss_limit_mb=1024", f"-max_total_time={seconds:.0f}"]
    where = [f"-artifact_prefix={_FOUND / name}/", "-print_final_stats=1", "-verbosity=0"]
    atheris.Setup([name, *limits, *where, str(grown), str(CORPUS / name)], TARGETS[name])
    atheris.Fuzz()


def main(minutes: float, names: list[str]) -> int:
    """Fuzzes the targets one after another, each in a process; returns how many of them failed."""
    failed = 0
    for name in names:
        command = [sys.executable, "-m", "tests.fuzz.run", name, str(minutes * 60)]
        done = subprocess.run(command, capture_output=True, check=False)
        executed = [line for line in done.stderr.decode(errors="replace").splitlines() if "number_of_executed" in line]
        print(f"{name}: {' '.join(executed) or 'no statistics'}, status {done.returncode}", flush=True)
        if done.returncode:
            failed += 1
            sys.stdout.write(
                done.stdout.decode(errors="replace")[-4000:] + done.stderr.decode(errors="replace")[-4000:]
            )
    return failed


if __name__ == "__main__":
    if not sys.argv[1][0].isdigit():
        fuzz(sys.argv[1], float(sys.argv[2]))
    sys.exit(min(main(float(sys.argv[1]), sys.argv[2:] or sorted(os.listdir(CORPUS))), 1))
