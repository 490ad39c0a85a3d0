"""Every file of a save, links followed for reading. The walk ends even if links form a cycle."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from publish.adapters.posix.faults import NOT_THERE
from publish.adapters.posix.fds import DIRECTORY, MAX_DEPTH, closing
from publish.adapters.posix.root import Identity, RootDirectory, identity
from publish.adapters.posix.saves import version_of
from publish.domain.entry import to_text
from publish.domain.errors import PermanentFault
from publish.domain.ports import DANGLING, SavedFile


def files(root: RootDirectory, path: bytes) -> Iterator[SavedFile]:
    """The regular files below the folder `path`, in no order; none if it is not a folder.

    Raises PermanentFault where folders are nested too deep.
    """
    folder = root.look(path, lambda name, directory: os.open(name, DIRECTORY, dir_fd=directory))
    if folder is not None:
        yield from _Walk(root.absolute(path)).below(folder, b"")


class _Walk:
    """A folder is entered through a link once, so the work is bounded whatever links there are."""

    def __init__(self, save: bytes) -> None:
        self._save = save
        self._linked: set[Identity] = set()
        self._around: list[Identity] = []

    def below(self, folder: int, inside: bytes) -> Iterator[SavedFile]:
        """The files in an opened folder, which is closed at the end."""
        with closing(folder):
            if len(self._around) >= MAX_DEPTH:
                raise PermanentFault(f"nested deeper than {MAX_DEPTH} folders: {to_text(self._save)}")
            self._around.append(identity(os.fstat(folder)))
            with os.scandir(folder) as scan:
                members = [(os.fsencode(entry.name), entry.is_symlink()) for entry in scan]
            for name, is_link in members:
                yield from self._member(folder, name, inside + name, is_link=is_link)
            self._around.pop()

    def _member(self, folder: int, name: bytes, path: bytes, *, is_link: bool) -> Iterator[SavedFile]:
        try:
            status = os.stat(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (*NOT_THERE, errno.ELOOP):
                raise
            if is_link:
                yield SavedFile(path, DANGLING, "")
            return
        if stat.S_ISREG(status.st_mode):
            yield SavedFile(path, status.st_size, version_of(status))
        elif stat.S_ISDIR(status.st_mode) and self._try_enter(identity(status), is_link=is_link):
            try:
                below = os.open(name, DIRECTORY, dir_fd=folder)
            except FileNotFoundError:
                return
            yield from self.below(below, path + b"/")

    def _try_enter(self, folder: Identity, *, is_link: bool) -> bool:
        if folder in self._around or (is_link and folder in self._linked):
            return False
        if is_link:
            self._linked.add(folder)
        return True
