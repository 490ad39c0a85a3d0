"""Deletes a save by descriptors, one component at a time: no link leads it out of the root.

A directory is only ever opened from the one above it, with O_NOFOLLOW, so what a link swapped
in meanwhile points to is out of reach; at worst the link itself is removed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from publish.adapters.posix.faults import final, ignoring_absence
from publish.adapters.posix.fds import DIRECTORY, DIRECTORY_ITSELF, MAX_DEPTH, Fsync, opening
from publish.adapters.posix.root import RootDirectory
from publish.domain.entry import to_text
from publish.domain.errors import PermanentFault, SymlinkInPath

# On NFS, ESTALE below a folder is what another prune has removed meanwhile (nfs.4).
_GONE = (errno.ENOENT, errno.ESTALE)


class _Missing(Exception):
    """Nothing stands at the path."""


def remove(root: RootDirectory, fsync: Fsync, path: bytes, first: Sequence[bytes]) -> bool:
    """Removes the file or folder at `path`, its files `first` before all others; returns whether it was there.

    Raises SymlinkInPath, ConfigError where the root is gone, OSError for a way that cannot be
    gone, and PermanentFault: when one of `first` cannot be removed, and nothing is; when something
    else cannot, and all the rest is.
    """
    *above, name = path.split(b"/")
    try:
        with _open_parent(root, fsync, above) as parent:
            _Removal(parent, path, fsync).run(name, first)
            with final(f"sync the folder of {to_text(path)}"), ignoring_absence():
                fsync(parent)
    except _Missing:
        root.reopen()
        return False
    return True


@contextmanager
def _open_parent(root: RootDirectory, fsync: Fsync, components: Sequence[bytes]) -> Iterator[int]:
    """The directory that `components` lead to from the root, opened.

    Where something is missing on the way, the folder that does not have it is synced: an earlier
    prune may only have removed it (data.6).
    """
    directory = os.open(b".", DIRECTORY, dir_fd=root.fd)
    try:
        for depth, component in enumerate(components, 1):
            below = _open_directory(directory, component, b"/".join(components[:depth]))
            os.close(directory)
            directory = below
        yield directory
    except _Missing:
        with final("sync the folder of a save that is gone"):
            fsync(directory)
        raise
    finally:
        os.close(directory)


def _open_directory(directory: int, component: bytes, path: bytes) -> int:
    """Opens a directory below; `path` is its path from the root."""
    while True:
        try:
            return os.open(component, DIRECTORY_ITSELF, dir_fd=directory)
        except OSError as error:
            if error.errno in _GONE:
                raise _Missing from None
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
        # A link or a file; or a directory again, when it was swapped in the meantime.
        if not stat.S_ISDIR(_mode(directory, component, path)):
            raise _Missing


def _mode(directory: int, name: bytes, path: bytes) -> int:
    """The mode of what stands there. Raises SymlinkInPath for a link."""
    try:
        mode = os.lstat(name, dir_fd=directory).st_mode
    except OSError as error:
        if error.errno in _GONE:
            raise _Missing from None
        raise
    if stat.S_ISLNK(mode):
        raise SymlinkInPath(path)
    return mode


class _Removal:
    """One save's removal, which carries on past what cannot be removed."""

    def __init__(self, parent: int, path: bytes, fsync: Fsync) -> None:
        self._parent = parent
        self._path = path
        self._fsync = fsync
        self._faults: list[tuple[bytes, str]] = []

    def run(self, name: bytes, first: Sequence[bytes]) -> None:
        if stat.S_ISDIR(_mode(self._parent, name, self._path)):
            directory = _open_directory(self._parent, name, self._path)
            try:
                self._remove_first(directory, first)
                self._empty(directory, self._path, 1)
            finally:
                os.close(directory)
            self._remove_emptied(self._parent, name, self._path, known=0)
        else:
            self._try(os.unlink, self._parent, name, self._path)
        if self._faults:
            path, fault = self._faults[0]
            more = f" (and {len(self._faults) - 1} more)" if len(self._faults) > 1 else ""
            raise PermanentFault(f"{fault}: {to_text(path)}{more}")

    def _remove_first(self, directory: int, names: Sequence[bytes]) -> None:
        """Removes files, durably, before anything else goes."""
        for name in names:
            try:
                os.unlink(name, dir_fd=directory)
            except OSError as error:
                if error.errno in (*_GONE, errno.EISDIR):
                    continue
                marker = to_text(self._path + b"/" + name)
                raise PermanentFault(f"{error.strerror}, so nothing of the save is removed: {marker}") from error
        with final(f"sync {to_text(self._path)}"), ignoring_absence():
            self._fsync(directory)

    def _empty(self, directory: int, path: bytes, depth: int) -> None:
        try:
            with os.scandir(directory) as scan:
                members = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in scan]
        except OSError as error:
            self._note(error, path)
            return
        for name, is_directory in members:
            below = path + b"/" + name
            if is_directory:
                self._remove_directory(directory, name, below, depth + 1)
            else:
                self._try(os.unlink, directory, name, below)

    def _remove_directory(self, parent: int, name: bytes, path: bytes, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._faults.append((path, f"nested deeper than {MAX_DEPTH} folders"))
            return
        known = len(self._faults)
        try:
            with opening(name, DIRECTORY_ITSELF, parent) as directory:
                self._empty(directory, path, depth)
        except NotADirectoryError:
            # Swapped for a link or a file meanwhile, which goes as such.
            self._try(os.unlink, parent, name, path)
            return
        except OSError as error:
            self._note(error, path)
        self._remove_emptied(parent, name, path, known)

    def _remove_emptied(self, parent: int, name: bytes, path: bytes, known: int) -> None:
        """Removes a folder unless faults, beyond the `known`, say what is still in it.

        Where none does, something unseen is, such as the .nfsXXXX file of a reader on this node.
        """
        if len(self._faults) == known:
            self._try(os.rmdir, parent, name, path)

    def _try(self, act: Callable[..., None], parent: int, name: bytes, path: bytes) -> None:
        try:
            act(name, dir_fd=parent)
        except OSError as error:
            self._note(error, path)

    def _note(self, error: OSError, path: bytes) -> None:
        if error.errno in _GONE:
            return  # another prune was faster
        self._faults.append((path, os.strerror(error.errno or 0)))
