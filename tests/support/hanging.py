"""A program that hangs in the kernel when a test says so (hanging_program.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support import hanging_program
from tests.support.program import Word, start


class Hanging:
    """The running program."""

    def __init__(self, process: subprocess.Popen[bytes], fifo: Path) -> None:
        self.process = process
        self._fifo = fifo

    def hang(self) -> None:
        """Returns when the program hangs in its next listing."""
        os.mkfifo(self._fifo)
        while not self._hangs():
            assert self.process.poll() is None

    def go_on(self) -> None:
        """Ends the hang, also one that is about to begin: as long as the FIFO is there, it has a writer."""
        writer = os.open(self._fifo, os.O_RDWR)
        self._fifo.unlink()
        os.close(writer)

    def _hangs(self) -> bool:
        for status in Path(f"/proc/{self.process.pid}/task").glob("*/status"):
            with suppress(OSError):
                if re.search(r"^State:\tD", status.read_text(), re.MULTILINE):
                    return True
        return False


@contextmanager
def hanging(fifo: Path, *words: Word) -> Iterator[Hanging]:
    """The program runs while the block does."""
    with start(str(hanging_program.__file__), fifo, *words, executable=sys.executable) as process:
        running = Hanging(process, fifo)
        try:
            yield running
        finally:
            process.kill()
            if fifo.exists():
                running.go_on()
