"""A secret in a file. Checks are made on the descriptor that is read, so no file can be swapped in between.

No error quotes a file's content.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from publish.adapters._io import READ_FLAGS, FileTooLargeError, read_descriptor
from publish.domain.credentials import reject_unknown_fields, validate_value
from publish.domain.errors import CredentialsError, SourceUnavailable

MAX_BYTES = 64 * 1024

GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO
WRITABLE = stat.S_IWGRP | stat.S_IWOTH


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
    value = _content(descriptor, what, WRITABLE)
    validate_value(what, value)
    return value


@contextmanager
def open_directory(path: bytes) -> Iterator[int]:
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


def names_in(directory: int) -> list[str]:
    """What the opened directory holds. Raises CredentialsError."""
    try:
        return os.listdir(directory)
    except OSError as fault:
        raise CredentialsError(f"cannot list the directory: {fault.strerror}") from fault


def read_fields(directory: int, names: Iterable[str], fields: Collection[str], refused: int) -> dict[str, str]:
    """The text of each of the files `names`, as `_content`. Raises CredentialsError for one that is not in `fields`."""
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
        access, mend = ("access to", "600") if refused == GROUP_AND_OTHERS else ("write permission for", "go-w")
        mode = stat.S_IMODE(status.st_mode)
        raise CredentialsError(f"group or others have {access} the file (run chmod {mend}), mode {mode:04o}: {name}")
    if status.st_nlink != 1:
        raise CredentialsError(f"the file has {status.st_nlink} hard links: {name}")
