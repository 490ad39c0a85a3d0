"""Reading what frameworks wrote: folders listed, files measured and read.

Links in the folders on the way to a save are followed, since a save may lie behind one (publish.3).
A link in a file's own place is not, unless a docstring says so.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator

from publish.adapters.posix.fds import DIRECTORY, FILE, FILE_ITSELF, closing
from publish.adapters.posix.root import RootDirectory
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError, FormatError

_READ_BYTES = 1 << 20


def version_of(status: os.stat_result) -> str:
    """Changes when a file is rewritten in place or replaced."""
    return f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"


class Saves:
    """The saves below one root."""

    def __init__(self, root: RootDirectory) -> None:
        self._root = root

    def save_exists(self, path: bytes) -> bool:
        """stat(2), links followed: a folder or a regular file."""
        try:
            status = self._root.look(path, _stat)
        except OSError as error:
            if error.errno == errno.ELOOP:
                return False
            raise
        return status is not None and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode))

    def status(self, path: bytes) -> os.stat_result | None:
        """lstat(2)."""
        return self._root.look(path, _lstat)

    def file_status(self, path: bytes) -> os.stat_result | None:
        """lstat(2) of a regular file, else None."""
        status = self.status(path)
        return status if status is not None and stat.S_ISREG(status.st_mode) else None

    def names(self, path: bytes, wanted: Callable[[os.DirEntry[str]], bool]) -> list[bytes]:
        """The wanted names in a folder. Raises ConfigError where the root is gone, or `path` is not a folder."""
        self._root.check()
        folder = self._root.look(path, _open_directory)
        if folder is None:
            if self._root.look(path, _lstat) is not None:
                raise ConfigError(f"not a directory: {to_text(self._root.absolute(path))}")
            return []
        with closing(folder), os.scandir(folder) as scan:
            return [os.fsencode(entry.name) for entry in scan if wanted(entry)]

    def read(self, path: bytes, limit: int) -> bytes | None:
        """The first `limit` bytes of a regular file."""
        file = self._open(path, FILE_ITSELF)
        if file is None:
            return None
        with closing(file):
            _require_regular(file)
            return b"".join(self._parts(file, 0, limit))

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        """A part of a regular file, links followed."""
        file = self._open(path, FILE)
        if file is None:
            raise FormatError("not there")
        with closing(file):
            size = _require_regular(file).st_size
            return b"".join(self._parts(file, start if start >= 0 else max(0, size + start), length))

    def real_path(self, path: bytes) -> bytes | None:
        """Where a path below the root leads to, relative to the root; None: outside, or nowhere."""
        real = self._real_path(path)
        # Links are resolved by the root's path, which must still lead to the root.
        self._root.check()
        return None if real is None else below(self._root, real)

    def _real_path(self, path: bytes) -> bytes | None:
        """The absolute path without links; None: it leads nowhere."""
        try:
            if self._root.look(path, _stat) is None:
                return None
            return os.path.realpath(self._root.absolute(path), strict=True)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise

    def owner_is_trusted(self, path: bytes, reference: bytes) -> bool:
        """Whether `path` belongs to the user running, to root or to the owner of `reference`."""
        status = self.status(path)
        if status is None or status.st_uid in (os.geteuid(), 0):
            return True
        folder = self._root.look(reference, _stat)
        return folder is not None and folder.st_uid == status.st_uid

    def _open(self, path: bytes, flags: int) -> int | None:
        """Raises FormatError for what is there and cannot be opened as a file."""
        try:
            return self._root.look(path, lambda name, directory: os.open(name, flags, dir_fd=directory))
        except OSError as error:
            if self._root.is_transient(error):
                raise
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise FormatError("not a regular file") from error
            raise FormatError(f"not readable: {error.strerror}") from error

    def _parts(self, file: int, start: int, length: int) -> Iterator[bytes]:
        while length > 0:
            try:
                part = os.pread(file, min(_READ_BYTES, length), start)
            except OSError as error:
                if self._root.is_transient(error):
                    raise
                raise FormatError(f"not readable: {error.strerror}") from error
            if not part:
                return
            yield part
            start += len(part)
            length -= len(part)


def below(root: RootDirectory, real: bytes) -> bytes | None:
    """The part of an absolute path, without links in it, that lies below the root; None: outside.

    The root is recognised by device and inode, since a bind mount gives it a second path.
    """
    ancestor, rest = real, b""
    while not root.is_at(ancestor):
        ancestor, name = os.path.split(ancestor)
        if not name:
            return None
        rest = os.path.join(name, rest) if rest else name
    return rest


def is_directory(entry: os.DirEntry[str]) -> bool:
    """Whether a listed name is a folder; links are not."""
    return entry.is_dir(follow_symlinks=False)


def is_file(entry: os.DirEntry[str]) -> bool:
    """Whether a listed name is a regular file; links are not."""
    return entry.is_file(follow_symlinks=False)


def _stat(path: bytes, directory: int) -> os.stat_result:
    return os.stat(path, dir_fd=directory)


def _lstat(path: bytes, directory: int) -> os.stat_result:
    return os.lstat(path, dir_fd=directory)


def _open_directory(path: bytes, directory: int) -> int:
    return os.open(path, DIRECTORY, dir_fd=directory)


def _require_regular(file: int) -> os.stat_result:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise FormatError("not a regular file")
    return status
