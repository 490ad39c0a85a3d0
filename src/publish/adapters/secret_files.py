"""Reads secrets from files. Checks are made on the descriptor that is read, so no file can be swapped in between.

No error quotes a file's content.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from publish.adapters._io import READ_FLAGS, FileTooLargeError, read_descriptor
from publish.domain.credentials import (
    FIELDS,
    Credentials,
    DirectorySpec,
    Source,
    check_fields,
    parse_credentials,
    reject_unknown_fields,
    validate_value,
)
from publish.domain.errors import CredentialsError, SourceUnavailable

MAX_BYTES = 64 * 1024

_GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
# The kubelet swaps about once a minute, so this many swaps during one read have another cause.
_MAX_SWAPS = 1000
_DATA = "..data"


def directory_source(spec: DirectorySpec) -> Source:
    """The source that an item of `-creds` describes. Does not access it."""
    if spec.kind == "secret":
        return SecretDirectory(spec.name, spec.path)
    return PrivateDirectory(spec.name, spec.path)


class SecretDirectory:
    """`secret:DIR`, a Secret as the kubelet mounts it, for which anyone may list DIR."""

    def __init__(self, name: str, path: bytes) -> None:
        """`name` is for messages; `path` is absolute."""
        self.name = name
        self._path = path

    def read(self, budget: float) -> Credentials:  # noqa: ARG002  (local; the caller has a deadline)
        """The fields, all of one generation. Raises SourceUnavailable or CredentialsError."""
        with _open_directory(self._path) as directory:
            for _ in range(_MAX_SWAPS):
                fields = _read_mounted(directory)
                if fields is not None:
                    return parse_credentials(fields)
        raise CredentialsError(f"{_DATA} is dangling, or kept changing while being read")


class PrivateDirectory:
    """`file:DIR`, a directory to which only its owner has access."""

    def __init__(self, name: str, path: bytes) -> None:
        """`name` is for messages; `path` is absolute."""
        self.name = name
        self._path = path

    def read(self, budget: float) -> Credentials:  # noqa: ARG002  (local; the caller has a deadline)
        """The fields. Raises SourceUnavailable or CredentialsError."""
        return parse_credentials(_read_private(self._path, FIELDS))


def read_private_directory(path: bytes, fields: Collection[str]) -> dict[str, str]:
    """The files `fields` of a directory with the checks of `file:DIR`; any other file in it is an error.

    Raises SourceUnavailable if it does not exist, CredentialsError if it is invalid.
    """
    values = _read_private(path, fields)
    check_fields(values, fields)
    return values


def read_secret_file(path: bytes, what: str) -> str:
    """The value that a file holds, without one trailing newline. `what` names it in messages.

    Raises SourceUnavailable if it does not exist, CredentialsError if it is invalid.
    """
    try:
        descriptor = os.open(path, READ_FLAGS)
    except FileNotFoundError:
        if os.path.lexists(path):
            raise CredentialsError(f"{what} file is a dangling symlink: {os.fsdecode(path)}") from None
        raise SourceUnavailable(f"{what} file not found: {os.fsdecode(path)}") from None
    except OSError as fault:
        raise CredentialsError(f"cannot open the {what} file ({fault.strerror}): {os.fsdecode(path)}") from fault
    value = _content(descriptor, what, _WRITABLE)
    validate_value(what, value)
    return value


def _read_mounted(directory: int) -> dict[str, str] | None:
    """The fields; None if the Secret was replaced meanwhile.

    To update it, the kubelet writes a new folder, renames a link to it over `..data`, creates and removes
    links in DIR for fields that came and went, and removes the old folder. So the folder behind `..data`
    is the Secret, and links beside it may be behind or ahead (kubernetes, pkg/volume/util/atomic_writer.go).
    """
    names = {name for name in _names(directory) if not name.startswith("..")}
    try:
        generation = _open_generation(directory)
    except FileNotFoundError:
        return None if _is_there(_DATA, directory) else _read_fields(directory, names, FIELDS, _WRITABLE)
    except OSError as fault:
        raise CredentialsError(f"cannot open {_DATA}: {fault.strerror}") from fault
    try:
        in_data = {name for name in _names(generation) if not name.startswith("..")}
        fields = _read_fields(generation, in_data, FIELDS, _WRITABLE)
        extra = {name for name in names - in_data if not _leads_into_data(name, directory)}
        fields |= _read_fields(directory, extra, FIELDS, _WRITABLE)
    except CredentialsError:
        if _is_current(generation, directory):
            raise
        return None
    else:
        return fields if _is_current(generation, directory) else None
    finally:
        os.close(generation)


def _read_private(path: bytes, fields: Collection[str]) -> dict[str, str]:
    with _open_directory(path) as directory:
        status = os.fstat(directory)
        if status.st_mode & _GROUP_AND_OTHERS:
            mode = stat.S_IMODE(status.st_mode)
            raise CredentialsError(f"group or others have access to the directory (run chmod 700); mode: {mode:04o}")
        if status.st_uid not in {0, os.geteuid()}:
            raise CredentialsError(
                f"the directory belongs to neither you ({os.geteuid()}) nor root; owner: {status.st_uid}"
            )
        return _read_fields(directory, _names(directory), fields, _GROUP_AND_OTHERS)


@contextmanager
def _open_directory(path: bytes) -> Iterator[int]:
    """A descriptor of the directory. Follows a symlink."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        # With a trailing slash lstat(2) follows the link.
        if os.path.lexists(path.rstrip(b"/")):
            raise CredentialsError(f"dangling symlink: {os.fsdecode(path)}") from None
        # A relative location was made absolute: a ~ that the shell left as it was is an element of the path by now.
        tilde = any(part.startswith(b"~") for part in path.split(b"/"))
        hint = f" (~ is not expanded, give the whole path): {os.fsdecode(path)}" if tilde else ""
        raise SourceUnavailable(f"directory not found{hint}") from None
    except NotADirectoryError:
        raise CredentialsError(f"not a directory: {os.fsdecode(path)}") from None
    except OSError as fault:
        raise CredentialsError(f"cannot open the directory ({fault.strerror}): {os.fsdecode(path)}") from fault
    try:
        yield directory
    finally:
        os.close(directory)


def _names(directory: int) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError as fault:
        raise CredentialsError(f"cannot list the directory: {fault.strerror}") from fault


def _read_fields(directory: int, names: Iterable[str], fields: Collection[str], refused: int) -> dict[str, str]:
    names = sorted(names)
    reject_unknown_fields(names, fields)
    return {name: _read_field(directory, name, refused) for name in names}


def _read_field(directory: int, name: str, refused: int) -> str:
    try:
        # A symlink could lead out of the folder, to a file that is for another purpose.
        descriptor = os.open(name, READ_FLAGS | os.O_NOFOLLOW, dir_fd=directory)
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise CredentialsError(f"the file is a symlink: {name}") from None
        raise CredentialsError(f"cannot open the file ({fault.strerror}): {name}") from fault
    return _content(descriptor, name, refused)


def _open_generation(directory: int) -> int:
    """The folder that `..data` names, which must be in the same directory. Raises OSError."""
    try:
        target = os.readlink(_DATA, dir_fd=directory)
    except OSError as fault:
        if fault.errno == errno.EINVAL:
            raise CredentialsError(f"{_DATA} is not a symlink") from None
        raise
    if "/" in target or target == "..":
        raise CredentialsError(f"{_DATA} leads out of the directory")
    return os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)


def _content(descriptor: int, name: str, refused: int) -> str:
    """The text of a regular file without one trailing newline. Closes the descriptor.

    `refused` are the permissions that it must not have.
    """
    try:
        _check_file(os.fstat(descriptor), name, refused)
        raw = read_descriptor(descriptor, MAX_BYTES)
    except FileTooLargeError:
        raise CredentialsError(f"file larger than {MAX_BYTES // 1024} KiB: {name}") from None
    except OSError as fault:
        raise CredentialsError(f"cannot read the file ({fault.strerror}): {name}") from fault
    finally:
        os.close(descriptor)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # Raised below, outside this block: UnicodeDecodeError holds the content, and would be its context.
        text = None
    if text is None:
        raise CredentialsError(f"file is not UTF-8: {name}")
    return text.removesuffix("\n")


def _check_file(status: os.stat_result, name: str, refused: int) -> None:
    """Raises CredentialsError for a file that someone else could have put here, or could read or change."""
    if not stat.S_ISREG(status.st_mode):
        raise CredentialsError(f"not a regular file: {name}")
    if status.st_uid not in {0, os.geteuid()}:
        raise CredentialsError(
            f"the file belongs to neither you ({os.geteuid()}) nor root, but to user {status.st_uid}: {name}"
        )
    if status.st_mode & refused:
        access, mend = ("access to", "600") if refused == _GROUP_AND_OTHERS else ("write permission for", "go-w")
        mode = stat.S_IMODE(status.st_mode)
        raise CredentialsError(f"group or others have {access} the file (run chmod {mend}), mode {mode:04o}: {name}")
    if status.st_nlink != 1:
        raise CredentialsError(f"the file has {status.st_nlink} hard links: {name}")


def _is_current(generation: int, directory: int) -> bool:
    """Whether `..data` still leads to this folder. It is open, so its inode number is not reused."""
    try:
        return os.path.samestat(os.stat(_DATA, dir_fd=directory), os.fstat(generation))
    except OSError:
        return False


def _is_there(name: str, directory: int) -> bool:
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _leads_into_data(name: str, directory: int) -> bool:
    """Whether it is the kubelet's link for a field that was added or removed, or is gone."""
    try:
        return os.readlink(name, dir_fd=directory).startswith(f"{_DATA}/")
    except FileNotFoundError:
        return True
    except OSError:
        return False
