"""Descriptors: opened, closed and made durable."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
DIRECTORY_ITSELF = DIRECTORY | os.O_NOFOLLOW
# O_NONBLOCK: a FIFO in a file's place does not hang open(2).
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
FILE_ITSELF = FILE | os.O_NOFOLLOW

MAX_DEPTH = 400
"""How many folders deep a walk goes: each level holds a descriptor, and a process usually has 1,024 of them."""

# fsync(2) on a filesystem without it, as some on FUSE or CIFS.
_FSYNC_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def opening(path: bytes, flags: int, above: int | None = None) -> Iterator[int]:
    """A descriptor for `path`, relative to the directory `above` if given; closed at the end."""
    with closing(os.open(path, flags, dir_fd=above)) as descriptor:
        yield descriptor


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """The descriptor; closed at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Fsync:
    """fsync(2). On a filesystem that does not support it, warns once and goes on."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """`warn` takes a line for the user."""
        self._warn = warn
        self._warned = False

    def __call__(self, descriptor: int) -> None:
        """Raises OSError for every other failure: EPERM and EACCES as well as EIO."""
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _FSYNC_UNSUPPORTED:
                raise
            if not self._warned:
                self._warned = True
                self._warn(
                    "the filesystem of the root does not support fsync, so it is not known "
                    f"whether what is published survives a power loss: {error.strerror}"
                )

    def folder(self, path: bytes, above: int) -> None:
        """Syncs the directory `path` below `above`, unless it has gone or this user may not open it.

        Without permission to read a directory its sync cannot be asked for (open(2), fsync(2)).
        """
        try:
            descriptor = os.open(path, DIRECTORY, dir_fd=above)
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            return
        with closing(descriptor):
            self(descriptor)
