"""Secrets in files of this node. What is checked is what is read: all goes through descriptors opened once.

No text made here holds a file's content.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from publish.domain.credentials import (
    FIELDS,
    Credentials,
    check_fields,
    parse_credentials,
    reject_unknown_fields,
    validate_value,
)
from publish.domain.errors import CredentialsError, SourceUnavailable

MAX_BYTES = 64 * 1024

# O_NONBLOCK: a FIFO with no writer is opened, seen and refused, where it would hang (open(2)).
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# The kubelet swaps about once a minute; so many swaps during one read are something else.
_MOST_SWAPS = 1000
_DATA = "..data"


class SecretDirectory:
    """`secret:DIR`, a Secret as the kubelet mounts it. Modes are the pod's business and not checked (C1)."""

    def __init__(self, name: str, path: bytes) -> None:
        """`name` is for messages; `path` is absolute."""
        self.name = name
        self._path = path

    def read(self, budget: float) -> Credentials:  # noqa: ARG002  (a local disk; the caller bounds the whole)
        """The fields, all of one generation (C5). Raises SourceUnavailable or CredentialsError."""
        with _directory(self._path) as directory:
            for _ in range(_MOST_SWAPS):
                fields = _read_mounted(directory)
                if fields is not None:
                    return parse_credentials(fields)
        raise CredentialsError(f"its {_DATA} leads nowhere, or was replaced each time it was read")


class PrivateDirectory:
    """`file:DIR`, a directory that nobody else can look into (C1)."""

    def __init__(self, name: str, path: bytes) -> None:
        """`name` is for messages; `path` is absolute."""
        self.name = name
        self._path = path

    def read(self, budget: float) -> Credentials:  # noqa: ARG002  (a local disk; the caller bounds the whole)
        """The fields. Raises SourceUnavailable or CredentialsError."""
        return parse_credentials(_read_private(self._path, FIELDS))


def read_private_directory(path: bytes, fields: Collection[str]) -> dict[str, str]:
    """The files `fields` and no other of a directory that is checked as a `file:` one is (V2, V7).

    Raises SourceUnavailable if there is none, CredentialsError if it is wrong.
    """
    values = _read_private(path, fields)
    check_fields(values, fields)
    return values


def read_secret_file(path: bytes, what: str) -> str:
    """A file's one value, less one newline at its end. `what` names it in messages.

    Raises SourceUnavailable if there is none, CredentialsError if it is wrong.
    """
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        if os.path.lexists(path):
            raise CredentialsError(f"the {what} file is a dangling link: {os.fsdecode(path)}") from None
        raise SourceUnavailable(f"there is no {what} file: {os.fsdecode(path)}") from None
    except OSError as fault:
        raise CredentialsError(f"the {what} file cannot be opened ({fault.strerror}): {os.fsdecode(path)}") from fault
    value = _content(descriptor, what)
    validate_value(what, value)
    return value


def _read_mounted(directory: int) -> dict[str, str] | None:
    """The fields; None if they were swapped for others meanwhile.

    The kubelet writes a new folder, renames a link to it over `..data`, makes and drops links in
    DIR for names that came or went, and removes the old folder. So what the folder behind `..data`
    holds is the Secret, whatever links stand beside it just now.
    """
    names = {name for name in _names(directory) if not name.startswith("..")}
    try:
        generation = os.open(_DATA, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return None if _is_there(_DATA, directory) else _read_fields(directory, names, FIELDS)
    except OSError as fault:
        raise CredentialsError(f"its {_DATA} cannot be opened: {fault.strerror}") from fault
    try:
        kept = {name for name in _names(generation) if not name.startswith("..")}
        fields = _read_fields(generation, kept, FIELDS)
        beside = {name for name in names - kept if not _leads_into_data(name, directory)}
        fields |= _read_fields(directory, beside, FIELDS)
    except CredentialsError:
        if _is_current(generation, directory):
            raise
        return None
    else:
        return fields if _is_current(generation, directory) else None
    finally:
        os.close(generation)


def _read_private(path: bytes, fields: Collection[str]) -> dict[str, str]:
    with _directory(path) as directory:
        status = os.fstat(directory)
        if status.st_mode & _OTHERS:
            mode = stat.S_IMODE(status.st_mode)
            raise CredentialsError(f"group and others may have no access to it (chmod 700); its mode is {mode:04o}")
        if status.st_uid not in {0, os.geteuid()}:
            raise CredentialsError(f"it belongs neither to you nor to root, but to user {status.st_uid}")
        return _read_fields(directory, _names(directory), fields)


@contextmanager
def _directory(path: bytes) -> Iterator[int]:
    """A descriptor of the directory; a link to one is followed."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        # A slash at the end would have the link followed.
        if os.path.lexists(path.rstrip(b"/")):
            raise CredentialsError(f"a dangling link is in its place: {os.fsdecode(path)}") from None
        raise SourceUnavailable(f"there is no such directory: {os.fsdecode(path)}") from None
    except NotADirectoryError:
        raise CredentialsError(f"not a directory: {os.fsdecode(path)}") from None
    except OSError as fault:
        raise CredentialsError(f"the directory cannot be opened ({fault.strerror}): {os.fsdecode(path)}") from fault
    try:
        yield directory
    finally:
        os.close(directory)


def _names(directory: int) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError as fault:
        raise CredentialsError(f"the directory cannot be listed: {fault.strerror}") from fault


def _read_fields(directory: int, names: Iterable[str], fields: Collection[str]) -> dict[str, str]:
    names = sorted(names)
    reject_unknown_fields(names, fields)
    return {name: _read_field(directory, name) for name in names}


def _read_field(directory: int, name: str) -> str:
    try:
        descriptor = os.open(name, _READ, dir_fd=directory)
    except FileNotFoundError:
        raise CredentialsError(f"a dangling link is in the place of the file: {name}") from None
    except OSError as fault:
        raise CredentialsError(f"the file cannot be opened ({fault.strerror}): {name}") from fault
    return _content(descriptor, name)


def _content(descriptor: int, name: str) -> str:
    """The text of a regular file, less one newline at its end. Closes the descriptor."""
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise CredentialsError(f"a {'directory' if stat.S_ISDIR(mode) else 'special file'} is no field: {name}")
        raw = b""
        while part := os.read(descriptor, MAX_BYTES + 1 - len(raw)):
            raw += part
    except OSError as fault:
        raise CredentialsError(f"the file cannot be read ({fault.strerror}): {name}") from fault
    finally:
        os.close(descriptor)
    if len(raw) > MAX_BYTES:
        raise CredentialsError(f"the file is over {MAX_BYTES // 1024} KiB: {name}")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # Raised below: in here it would carry the content along as its context.
        text = None
    if text is None:
        raise CredentialsError(f"the file is not UTF-8: {name}")
    return text.removesuffix("\n")


def _is_current(generation: int, directory: int) -> bool:
    """Whether `..data` still leads to this folder. It is held open, so its number is nobody else's."""
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
    """Whether it is the kubelet's link for a field that came or went, or has gone altogether."""
    try:
        return os.readlink(name, dir_fd=directory).startswith(f"{_DATA}/")
    except FileNotFoundError:
        return True
    except OSError:
        return False
