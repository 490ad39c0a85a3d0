"""Names in publish's own folders: listed, made exclusively, removed, each durably."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from publish.adapters.posix.creation import make_empty, make_with_content
from publish.adapters.posix.faults import ABSENT, NOT_THERE, final, ignoring_absence
from publish.adapters.posix.fds import FILE_ITSELF, Fsync, closing, opening
from publish.adapters.posix.namespaces import open_existing, open_for_reading, open_or_create
from publish.adapters.posix.nfs import is_removed_but_open
from publish.adapters.posix.root import Identity, RootDirectory, identity
from publish.domain.entry import to_text
from publish.domain.errors import AlreadyExists, ConfigError, FormatError, PermanentFault, StoreFault

_TEMPORARY = b".publish/tmp"
# A record is a line. What is longer was not written by publish.
_MAX_RECORD_BYTES = 1 << 16


class Entries:
    """The entries below one root."""

    def __init__(self, root: RootDirectory, fsync: Fsync) -> None:
        self._root = root
        self._fsync = fsync
        self._listed: dict[bytes, Identity] = {}

    def names(self, namespace: bytes) -> list[bytes]:
        """One scan; a name that goes away meanwhile may be missing."""
        with open_for_reading(self._root, namespace) as directory:
            return [] if directory is None else self._names_in(namespace, directory)

    def times(self, namespace: bytes) -> list[tuple[bytes, float]]:
        """As `names`, each with its modification time in seconds."""
        with open_for_reading(self._root, namespace) as directory:
            return [] if directory is None else list(_times(directory, self._names_in(namespace, directory)))

    def _names_in(self, namespace: bytes, directory: int) -> list[bytes]:
        self._listed[namespace] = identity(os.fstat(directory))
        with os.scandir(directory) as scan:
            return [name for entry in scan for name in self._counted(namespace, entry, directory)]

    def create(self, namespace: bytes, name: bytes, content: bytes) -> None:
        """Makes `name` with its content, or raises AlreadyExists; durable either way."""
        with open_or_create(self._root, namespace) as chain:
            file = self._make(chain.innermost, name, content)
            with final("created, but not yet durable (run this again)"):
                # If another process has removed it again, the sync of its folder makes that durable.
                with ignoring_absence():
                    if file is None:
                        self._sync_existing(namespace, chain.innermost, name)
                    else:
                        with closing(file):
                            self._fsync(file)
                chain.sync(self._fsync)
        if file is None:
            raise AlreadyExists(f"there is already: {to_text(name)}")

    def _make(self, directory: int, name: bytes, content: bytes) -> int | None:
        if not content:
            return make_empty(directory, name)
        with open_or_create(self._root, _TEMPORARY) as scratch:
            return make_with_content(scratch.innermost, directory, name, content, self._fsync)

    def read(self, namespace: bytes, name: bytes) -> bytes | None:
        """A record's content. Raises FormatError for what is not a record."""
        with open_for_reading(self._root, namespace) as directory:
            if directory is None:
                return None
            try:
                with opening(name, FILE_ITSELF, directory) as file:
                    if not stat.S_ISREG(os.fstat(file).st_mode):
                        raise self._not_regular(namespace, name)
                    content = os.read(file, _MAX_RECORD_BYTES)
            except OSError as error:
                if error.errno in ABSENT:
                    return None
                if error.errno in (errno.ELOOP, errno.ENXIO):
                    raise self._not_regular(namespace, name) from error
                raise
        return content

    def remove(self, namespace: bytes, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """unlink(2) of each, then one sync of the folder: also of what an earlier prune only unlinked (data.6)."""
        faults: dict[bytes, StoreFault] = {}
        with open_existing(self._root, namespace) as chain:
            if chain is None:
                return faults
            self._require_listed(namespace, chain.innermost)
            for name in names:
                try:
                    os.unlink(name, dir_fd=chain.innermost)
                except OSError as error:
                    if error.errno not in NOT_THERE:
                        faults[name] = PermanentFault(os.strerror(error.errno or 0))
            with final("removed, but not yet durable (run this again)"):
                self._fsync(chain.innermost)
        return faults

    def sync(self, namespace: bytes, names: Iterable[bytes]) -> None:
        """Makes durable what another process may only have made (data.5)."""
        with open_existing(self._root, namespace) as chain:
            if chain is None:
                return
            with final("already there, but not yet durable (run this again)"):
                for name in names:
                    with ignoring_absence():
                        self._sync_existing(namespace, chain.innermost, name)
                chain.sync(self._fsync)

    def _counted(self, namespace: bytes, entry: os.DirEntry[str], directory: int) -> Iterator[bytes]:
        """The entry's name if it counts. Raises FormatError for what is not a regular file (layout.4)."""
        name = os.fsencode(entry.name)
        if name.startswith(b".nfs") and is_removed_but_open(name, directory):
            return
        if entry.is_file(follow_symlinks=False):
            yield name
            return
        with suppress(FileNotFoundError):
            os.lstat(name, dir_fd=directory)
            raise self._not_regular(namespace, name)

    def _require_listed(self, namespace: bytes, directory: int) -> None:
        """A name is removed only from the folder whose listing had it."""
        if self._listed.get(namespace, identity(os.fstat(directory))) != identity(os.fstat(directory)):
            raise ConfigError(
                f"the folder was replaced by another while it was in use: {to_text(self._root.absolute(namespace))}"
            )

    def _sync_existing(self, namespace: bytes, directory: int, name: bytes) -> None:
        """Raises FormatError where it is not a regular file."""
        if not stat.S_ISREG(os.lstat(name, dir_fd=directory).st_mode):
            raise self._not_regular(namespace, name)
        try:
            file = os.open(name, FILE_ITSELF, dir_fd=directory)
        except PermissionError:
            # Another user's entry whose mode forbids it. Its name is what counts, and the folder has that.
            return
        with closing(file):
            self._fsync(file)

    def _not_regular(self, namespace: bytes, name: bytes) -> FormatError:
        path = self._root.absolute(os.path.join(namespace, name))
        return FormatError(f"not a regular file (move it out of the folder): {to_text(path)}")


def _times(directory: int, names: Iterable[bytes]) -> Iterator[tuple[bytes, float]]:
    for name in names:
        # One that a prune removes meanwhile is no longer in the log.
        with suppress(FileNotFoundError):
            yield name, os.lstat(name, dir_fd=directory).st_mtime
