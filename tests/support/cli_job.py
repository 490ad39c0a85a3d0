"""The two things that a job script does: it runs verbs that must succeed, and a watch beside the training."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.program import run, start


def publish(*arguments: str | Path) -> str:
    """Runs a verb that must succeed and say nothing on stderr; returns its stdout."""
    status, out, err = run(*arguments)
    assert (status, err) == (0, b"")
    return out.decode()


class Watch:
    """A running `publish watch`. What it says on stderr goes to pytest's."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def stop(self) -> str:
        """SIGTERM; returns what it printed, after the last line that was asked for."""
        self.process.terminate()
        rest, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return rest.decode()

    def line_with(self, text: str) -> str:
        """Waits for the line of its stdout that holds `text`. pytest's own time limit bounds the wait."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if text in line.decode():
                return line.decode()
        raise AssertionError(f"watch ended without a line that holds {text!r}")


@contextmanager
def watching(root: Path, framework: str, epoch: int, attempt: str, *flags: str) -> Iterator[Watch]:
    """`publish watch`, told by the scheduler's variables which execution it belongs to."""
    words: list[str | Path] = ["watch", "-checkpoint", root, "-framework", framework, "-interval", "100ms", *flags]
    scheduler = {"DISPATCH_EPOCH": str(epoch), "DISPATCH_ATTEMPT": attempt}
    with start(*words, env=scheduler, stderr=sys.stderr) as process:
        try:
            yield Watch(process)
        finally:
            process.kill()
