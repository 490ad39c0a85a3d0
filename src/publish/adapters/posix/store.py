"""The store on a directory. Each call opens what it needs afresh, so no stale handle answers."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from publish.adapters.posix.fds import DIRECTORY, held, opened, sync_directory
from publish.domain.entry import to_text
from publish.domain.errors import AlreadyExists, ConfigError, FormatError, PermanentFault, StoreFault
from publish.domain.ports import Namespace, Page, Removal

# limits.h; Linux filesystems, NFS, Lustre and GPFS all have this one.
_NAME_MAX = 255
_CHUNK_SIZE = 1 << 20

# ESTALE: on NFS, what another node removed while it was looked at.
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


def leads_to(root: bytes) -> Callable[[bytes], bool]:
    """Tells whether a path is the root's own directory, whatever links it goes through."""

    def is_root(path: bytes) -> bool:
        with suppress(OSError):
            return os.path.samefile(path, root)
        return False

    return is_root


class PosixStore:
    """The Store port on a directory."""

    def __init__(self, root: bytes) -> None:
        """`root` is absolute. Raises ConfigError unless it is there and a directory (R4)."""
        self._root = root
        self._require_root()

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:  # noqa: ARG002  (one page holds all)
        """One scan; a name that goes away meanwhile may be missing."""
        folder = self._path(namespace.value)
        with _answered(f"list {to_text(folder)}"):
            try:
                with os.scandir(folder) as scan:
                    return Page([entry.name for entry in scan if _is_regular(entry)], None)
            except FileNotFoundError:
                self._require_root()
                # What is no link may have been made since; it was not there when it was asked for.
                if os.path.islink(folder):
                    raise _no_directory(folder) from None
                return Page([], None)
            except NotADirectoryError:
                self._require_root()
                raise _no_directory(folder) from None

    def check_name_length(self, name: bytes) -> None:
        """NAME_MAX bounds the name; it leaves 133 bytes to the path."""
        if len(name) > _NAME_MAX:
            raise ConfigError(
                f"the save's path is too long: its entry would be a file name of {len(name)} bytes "
                f"and the limit is {_NAME_MAX}, which leaves 133 to the path below the root"
            )

    def create(self, namespace: Namespace, name: bytes) -> None:
        """open(2) with O_CREAT and O_EXCL; then the file, its folder and the root are synced.

        The root is synced each time: another process may have made the folder a moment ago.
        """
        folder = self._path(namespace.value)
        with _answered(f"create {to_text(folder)}/{to_text(name)}"), held(self._open_area(folder)) as directory:
            taken = not _is_created(directory, name)
            with _answered("it is there, but may not survive a crash until this is run again"):
                _sync_file(folder, directory, name)
                sync_directory(directory)
                self._sync_root()
        if taken:
            raise AlreadyExists(f"there is already: {to_text(name)}")

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """unlink(2) of each, then one sync of the folder."""
        faults: dict[bytes, StoreFault] = {}
        folder = self._path(namespace.value)
        with _answered(f"remove from {to_text(folder)}"):
            try:
                with opened(folder, DIRECTORY) as directory:
                    for name in names:
                        try:
                            os.unlink(name, dir_fd=directory)
                        except FileNotFoundError:
                            continue
                        except OSError as error:
                            faults[name] = PermanentFault(os.strerror(error.errno or 0))
                    sync_directory(directory)
            except FileNotFoundError:
                self._require_root()
        return faults

    def save_exists(self, path: bytes) -> bool:
        """stat(2), links followed: what lies behind one is the user's business (publish.3)."""
        absolute = self._path(path)
        with _answered(f"look at {to_text(absolute)}"):
            try:
                mode = os.stat(absolute).st_mode
            except OSError as error:
                if error.errno in (*_NOT_THERE, errno.ENAMETOOLONG, errno.ELOOP):
                    return False
                raise
        return stat.S_ISDIR(mode) or stat.S_ISREG(mode)

    def list_directories(self, path: bytes, token: str | None) -> Page:  # noqa: ARG002  (one page holds all)
        """One scan."""
        folder = self._path(path)
        with _answered(f"list {to_text(folder)}"):
            try:
                with os.scandir(folder) as scan:
                    return Page([entry.name for entry in scan if entry.is_dir(follow_symlinks=False)], None)
            except FileNotFoundError:
                self._require_root()
                return Page([], None)
            except NotADirectoryError:
                self._require_root()
                raise ConfigError(f"the folder of the saves is no directory: {to_text(folder)}") from None

    def exists(self, path: bytes) -> bool:
        """lstat(2)."""
        return self._status(path) is not None

    def size(self, path: bytes) -> int | None:
        """lstat(2)."""
        status = self._status(path)
        return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else None

    def read(self, path: bytes, limit: int) -> bytes | None:
        """open(2) with O_NONBLOCK, so that a FIFO in a file's place does not block it."""
        try:
            file = os.open(self._path(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise FormatError("not a regular file") from error
            raise FormatError(f"not readable: {error.strerror}") from error
        with held(file):
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise FormatError("not a regular file")
            return _read(file, limit)

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        """Goes down one component at a time, each opened from the one above without following links."""
        from publish.adapters.posix.removal import remove  # noqa: PLC0415  (prune alone pays for it)

        with _answered(f"remove {to_text(self._path(path))}"):
            return Removal(found=remove(self._root, path, first), incomplete=False)

    def _status(self, path: bytes) -> os.stat_result | None:
        absolute = self._path(path)
        with _answered(f"look at {to_text(absolute)}"):
            try:
                return os.lstat(absolute)
            except OSError as error:
                if error.errno in _NOT_THERE:
                    return None
                raise

    def _path(self, path: bytes) -> bytes:
        return os.path.join(self._root, path) if path else self._root

    def _open_area(self, folder: bytes) -> int:
        """A descriptor for the folder of an area, which is made where it is not there."""
        try:
            return os.open(folder, DIRECTORY)
        except FileNotFoundError:
            self._require_root()
        except NotADirectoryError:
            raise _no_directory(folder) from None
        with suppress(FileExistsError):
            os.mkdir(folder)
        try:
            return os.open(folder, DIRECTORY)
        except FileNotFoundError:
            raise _no_directory(folder) from None

    def _sync_root(self) -> None:
        try:
            with opened(self._root, DIRECTORY) as root:
                sync_directory(root)
        except PermissionError:
            # Who may not read the root cannot sync it either, nor has it made a folder there.
            return

    def _require_root(self) -> None:
        if not os.path.isdir(self._root):
            raise ConfigError(f"the root is not there or no directory (is it mounted?): {to_text(self._root)}")


def _read(file: int, limit: int) -> bytes:
    content = bytearray()
    try:
        while part := os.read(file, min(_CHUNK_SIZE, limit - len(content))):
            content += part
    except OSError as error:
        # A file that another node removed ends where it was read to.
        if error.errno not in _NOT_THERE:
            raise FormatError(f"not readable: {error.strerror}") from error
    return bytes(content)


def _is_regular(entry: os.DirEntry[bytes]) -> bool:
    """Whether it counts; False for one that has gone meanwhile. Raises FormatError for what is no file."""
    if entry.is_file(follow_symlinks=False):
        return True
    if not os.path.lexists(entry.path):
        return False
    raise FormatError(f"not a regular file, so no entry: {to_text(entry.path)}")


def _is_created(directory: int, name: bytes) -> bool:
    """Whether the file was made; False: the name is taken."""
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=directory))
    except FileExistsError:
        return False
    return True


def _sync_file(folder: bytes, directory: int, name: bytes) -> None:
    """Makes an entry durable, whoever made it: another process may not have come so far.

    Raises FormatError where it is no regular file.
    """
    if not stat.S_ISREG(os.lstat(name, dir_fd=directory).st_mode):
        raise FormatError(f"not a regular file, so no entry: {to_text(folder)}/{to_text(name)}")
    with suppress(PermissionError), opened(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, directory) as file:
        os.fsync(file)


def _no_directory(folder: bytes) -> FormatError:
    return FormatError(f"a dangling link, or no directory: {to_text(folder)}")


@contextmanager
def _answered(step: str) -> Iterator[None]:
    """Turns what the system refuses into the store's refusal of `step`."""
    try:
        yield
    except OSError as error:
        raise PermanentFault(f"{step}: {error.strerror}") from error
