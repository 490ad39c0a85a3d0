"""A save's own data is made durable before its publication (data.1 to data.3).

Writeback of all files is started first, so that the disk has them all to order; then each is
waited for. What vanishes meanwhile is not a fault: the save is looked at again afterwards.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from publish.adapters.posix.faults import NOT_THERE, final
from publish.adapters.posix.fds import DIRECTORY_ITSELF, FILE, FILE_ITSELF, MAX_DEPTH, Fsync, closing
from publish.adapters.posix.root import RootDirectory
from publish.adapters.posix.saves import below
from publish.domain.entry import to_text
from publish.domain.errors import NotDurable, PermanentFault

# A link or a file where a folder was: what was listed has vanished.
_VANISHED = (*NOT_THERE, errno.ELOOP, errno.ENXIO)


def sync_save(root: RootDirectory, fsync: Fsync, path: bytes) -> None:
    """Syncs every file and folder in the save, and the folders from it up to the root.

    Links inside are not followed; a save behind a link is synced where it lies.
    Raises NotDurable naming what could not be synced, OSError for what could not be opened.
    """
    save = root.look(path, lambda name, directory: os.open(name, FILE, dir_fd=directory))
    if save is None:
        return
    with closing(save):
        for act in (_start_writeback, fsync):
            _Walk(root, path, act).visit(save, path)
    for folder in _above(root, path):
        with final(f"sync {to_text(root.absolute(folder))}", NotDurable):
            fsync.folder(folder or b".", root.fd)


def _start_writeback(descriptor: int) -> None:
    """posix_fadvise(2) with DONTNEED: Linux starts to write what is dirty, and does not wait for it."""
    with suppress(OSError):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _above(root: RootDirectory, path: bytes) -> Iterator[bytes]:
    """The folders above a save as it is named and as it lies, inner before outer, the root (b"") last."""
    yield from _parents(path)
    real = os.path.realpath(root.absolute(path))
    inside = below(root, real)
    if inside is None:
        yield from _outside(real)
    elif inside != path:
        yield from _parents(inside)
    yield b""


def _outside(real: bytes) -> Iterator[bytes]:
    """The folders above an absolute path, as far as its filesystem goes."""
    with suppress(FileNotFoundError):
        device = os.stat(real).st_dev
        while real != b"/" and os.stat(real := os.path.dirname(real)).st_dev == device:
            yield real


def _parents(path: bytes) -> Iterator[bytes]:
    while path := os.path.dirname(path):
        yield path


class _Walk:
    """One visit to everything in a save; a folder comes after what it holds."""

    def __init__(self, root: RootDirectory, save: bytes, act: Callable[[int], None]) -> None:
        self._root = root
        self._save = save
        self._act = act

    def visit(self, descriptor: int, path: bytes) -> None:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            self._members(descriptor, path)
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            with final(f"sync {to_text(self._root.absolute(path))}", NotDurable):
                self._act(descriptor)

    def _members(self, folder: int, path: bytes) -> None:
        if path.count(b"/") - self._save.count(b"/") >= MAX_DEPTH:
            save = to_text(self._root.absolute(self._save))
            raise PermanentFault(f"nested deeper than {MAX_DEPTH} folders: {save}")
        with os.scandir(folder) as scan:
            members = [
                (os.fsencode(entry.name), DIRECTORY_ITSELF if entry.is_dir(follow_symlinks=False) else FILE_ITSELF)
                for entry in scan
                if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
            ]
        for name, flags in members:
            with self._open(name, flags, folder, path + b"/" + name) as member:
                if member is not None:
                    self.visit(member, path + b"/" + name)

    @contextmanager
    def _open(self, name: bytes, flags: int, folder: int, path: bytes) -> Iterator[int | None]:
        """A member's descriptor; None: it has vanished."""
        with self._root.translate_errors(f"open {to_text(self._root.absolute(path))} to sync it"):
            try:
                member = os.open(name, flags, dir_fd=folder)
            except OSError as error:
                if error.errno not in _VANISHED:
                    raise
                member = None
        if member is None:
            yield None
            return
        with closing(member):
            yield member
