"""The strict model as a mounted filesystem (FUSE), which writes down every change that a program makes.

It runs in a process of its own and serves one call at a time, so the order of the operations is the order of the log.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.strict_calls import Fault, Setup, Stop, serve
from tests.support.strict_model import Model, Op

_PATIENCE = 20.0  # seconds


class StrictMount:
    """A mounted model. `load` starts a recording, `taken` ends it."""

    def __init__(self, path: Path) -> None:
        """Mounts at `path`, an empty directory. Needs /dev/fuse and libfuse."""
        self.path = path
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._server = context.Process(target=serve, args=(str(path), theirs), daemon=True)
        self._server.start()
        theirs.close()
        self._receive("ready")

    def load(self, model: Model, stop: Stop | None = None, faults: Sequence[Fault] = ()) -> None:
        """Puts `model` in place of what is there, and forgets the log."""
        self._ours.send(Setup(model, stop, list(faults)))
        self._receive("loaded")

    def taken(self) -> list[Op]:
        """The changes since `load`."""
        self._ours.send(None)
        if not self._ours.poll(_PATIENCE):
            raise TimeoutError("the strict filesystem does not answer")
        ops: list[Op] = self._ours.recv()
        return ops

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Calls hang meanwhile, as on a server that does not answer."""
        assert self._server.pid
        os.kill(self._server.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._server.pid, signal.SIGCONT)

    def close(self) -> None:
        """Unmounts."""
        subprocess.run(["fusermount3", "-u", "-z", str(self.path)], check=True, timeout=_PATIENCE)
        self._server.join(_PATIENCE)
        self._ours.close()

    def _receive(self, expected: str) -> None:
        if not self._ours.poll(_PATIENCE):
            raise TimeoutError(f"the strict filesystem is not {expected}")
        assert self._ours.recv() == expected
