"""Keeps the process's memory, with the credentials in it, out of core dumps and from other processes of the user."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_DUMPABLE = 4  # PR_SET_DUMPABLE(2const)


class DumpsForbidden:
    """From its creation on, this process leaves no core dump and no other process of the user reads its memory."""

    def __init__(self) -> None:
        """The kernel honours either; a container's filter of system calls may refuse one."""
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        self._given = resource.getrlimit(resource.RLIMIT_CORE)
        self._forbid()

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Meanwhile a child inherits the limit that this process was given; execve(2) makes it dumpable again.

        This process itself stays not dumpable.
        """
        resource.setrlimit(resource.RLIMIT_CORE, self._given)
        try:
            yield
        finally:
            self._forbid()

    def _forbid(self) -> None:
        """Only the soft limit: an ordinary user may not raise the hard one again."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, self._given[1]))
