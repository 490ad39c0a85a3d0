"""Descriptors: opened, closed and synced."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def opened(path: bytes, flags: int, above: int | None = None) -> Iterator[int]:
    """A descriptor for `path`, relative to the directory `above` if given; closed at the end."""
    with held(os.open(path, flags, dir_fd=above)) as descriptor:
        yield descriptor


@contextmanager
def held(descriptor: int) -> Iterator[int]:
    """The descriptor; closed at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_directory(directory: int) -> None:
    """fsync(2) of a directory; where the filesystem has no such thing (FUSE, CIFS) there is nothing to do."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
