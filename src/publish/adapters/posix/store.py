"""The store on a directory: each call works below the one descriptor of the root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from publish.adapters.posix.entries import Entries
from publish.adapters.posix.faults import STALE, TRANSIENT_ON_READ
from publish.adapters.posix.fds import Fsync, opening
from publish.adapters.posix.root import RootDirectory
from publish.adapters.posix.saves import Saves, is_directory, is_file, version_of
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError, StoreFault
from publish.domain.ports import DatedName, DatedPage, FilesPage, Namespace, Page, Removal

# limits.h; Linux filesystems, NFS, Lustre and GPFS all have this one, some stacked ones a lower one.
_NAME_MAX = 255
# An entry's name without the path, and base32's 5 bytes in 8 letters.
_BEFORE_PATH = len(b"%020d-%020d-" % (0, 0))


class PosixStore:
    """The Store port on a directory."""

    def __init__(
        self, root: bytes, warn: Callable[[str], None] = lambda _line: None, *, outlives_faults: bool = False
    ) -> None:
        """`root` is absolute. `warn` takes what the user should know once.

        `outlives_faults`: what may pass, such as EIO on a read, is NotApplied and so may be tried
        again, as a watch does; otherwise ESTALE alone is (nfs.6).
        Raises ConfigError unless the root is there and a directory (root.4).
        """
        self._root = RootDirectory(root, TRANSIENT_ON_READ if outlives_faults else STALE)
        self._fsync = Fsync(warn)
        self._entries = Entries(self._root, self._fsync)
        self._saves = Saves(self._root)

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:  # noqa: ARG002  (one page holds all)
        """One scan; a name that goes away meanwhile may be missing."""
        with self._translate_errors("list", namespace.value):
            self._root.check()
            return Page(self._entries.names(namespace.value), None)

    def list_dated(self, namespace: Namespace, token: str | None) -> DatedPage:  # noqa: ARG002  (one page holds all)
        """The modification times of the entries, which are never written to."""
        with self._translate_errors("list", namespace.value):
            self._root.check()
            return DatedPage([DatedName(*one) for one in self._entries.times(namespace.value)], None)

    def check_name_length(self, name: bytes) -> None:
        """NAME_MAX bounds the name; 255 leave 133 bytes to the path."""
        limit = self._name_max()
        if len(name) > limit:
            raise ConfigError(
                f"the save's path is too long: its entry would be a file name of {len(name)} bytes and the limit "
                f"is {limit}, which leaves {max(0, limit - _BEFORE_PATH) * 5 // 8} to the path below the root"
            )

    def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
        """The file, its folder and all above it up to the root are synced.

        They are each time: another process may have made them a moment ago.
        """
        with self._translate_errors("create", os.path.join(namespace.value, name), writes=True):
            self._entries.create(namespace.value, name, content)

    def read_record(self, namespace: Namespace, name: bytes) -> bytes | None:
        """At most 64 KiB."""
        with self._translate_errors("read", os.path.join(namespace.value, name)):
            return self._entries.read(namespace.value, name)

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """unlink(2) of each, then one sync of the folder, also where none was there."""
        with self._translate_errors("remove from", namespace.value, writes=True):
            return self._entries.remove(namespace.value, names)

    def sync_entries(self, namespace: Namespace, names: Sequence[bytes]) -> None:
        """Each file, then the folders up to the root."""
        with self._translate_errors("sync", namespace.value):
            self._entries.sync(namespace.value, names)

    def save_exists(self, path: bytes) -> bool:
        """stat(2), links followed: what lies behind one is the user's business (publish.3)."""
        with self._translate_errors("look at", path):
            return self._saves.save_exists(path)

    def list_directories(self, path: bytes, token: str | None) -> Page:  # noqa: ARG002  (one page holds all)
        """One scan."""
        with self._translate_errors("list", path):
            return Page(self._saves.names(path, is_directory), None)

    def list_files_in(self, path: bytes, token: str | None) -> Page:  # noqa: ARG002  (one page holds all)
        """One scan."""
        with self._translate_errors("list", path):
            return Page(self._saves.names(path, is_file), None)

    def list_files(self, path: bytes, token: str | None) -> FilesPage:  # noqa: ARG002  (one page holds all)
        """A walk; a folder is entered through links at most once."""
        from publish.adapters.posix.tree import files  # noqa: PLC0415  (start-up: verify alone pays for it)

        with self._translate_errors("list", path):
            return FilesPage(list(files(self._root, path)), None)

    def exists(self, path: bytes) -> bool:
        """lstat(2)."""
        with self._translate_errors("look at", path):
            return self._saves.status(path) is not None

    def size(self, path: bytes) -> int | None:
        """lstat(2)."""
        with self._translate_errors("look at", path):
            status = self._saves.file_status(path)
        return None if status is None else status.st_size

    def version(self, path: bytes) -> str | None:
        """lstat(2): inode, mtime in nanoseconds and size."""
        with self._translate_errors("look at", path):
            status = self._saves.file_status(path)
        return None if status is None else version_of(status)

    def read(self, path: bytes, limit: int) -> bytes | None:
        """open(2) with O_NOFOLLOW and O_NONBLOCK, so that a FIFO in a file's place does not hang it."""
        with self._translate_errors("read", path):
            return self._saves.read(path, limit)

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        """pread(2), links followed."""
        with self._translate_errors("read", path):
            return self._saves.read_range(path, start, length)

    def sync_save(self, path: bytes) -> None:
        """posix_fadvise(2) for each file, then fsync(2) for each and for the folders up to the root."""
        from publish.adapters.posix.sync import sync_save  # noqa: PLC0415  (start-up)

        with self._translate_errors("sync", path):
            sync_save(self._root, self._fsync, path)

    def real_path(self, path: bytes) -> bytes | None:
        """realpath(3), against every path that leads to the root."""
        with self._translate_errors("look at", path):
            return self._saves.real_path(path)

    def is_link(self, path: bytes) -> bool:
        """lstat(2)."""
        with self._translate_errors("look at", path):
            return self._saves.is_link(path)

    def owner_is_trusted(self, path: bytes, reference: bytes) -> bool:
        """lstat(2) of `path`, stat(2) of `reference`."""
        with self._translate_errors("look at", path):
            return self._saves.owner_is_trusted(path, reference)

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        """Goes down one component at a time, each opened from the one above without following links."""
        from publish.adapters.posix.removal import remove  # noqa: PLC0415  (prune alone pays for it)

        with self._translate_errors("remove", path):
            return Removal(found=remove(self._root, self._fsync, path, first), incomplete=False)

    @contextmanager
    def _translate_errors(self, what: str, path: bytes, *, writes: bool = False) -> Iterator[None]:
        with self._root.translate_errors(f"{what} {to_text(self._root.absolute(path))}", writes=writes):
            yield

    def _name_max(self) -> int:
        """The limit of the filesystem that holds the entries: `pub` may be a mount point."""
        with suppress(OSError, ValueError):
            try:
                with opening(Namespace.PUB.value, os.O_PATH | os.O_CLOEXEC, self._root.fd) as pub:
                    return os.fpathconf(pub, "PC_NAME_MAX")
            except FileNotFoundError:
                return os.fpathconf(self._root.fd, "PC_NAME_MAX")
        return _NAME_MAX
