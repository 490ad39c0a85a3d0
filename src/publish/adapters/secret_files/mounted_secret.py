"""`secret:DIR`: a Secret as the kubelet mounts and updates it."""

from __future__ import annotations

import errno
import os

from publish.adapters.secret_files.files import WRITABLE, names_in, open_directory, read_fields
from publish.domain.credentials import FIELDS, Credentials, parse_credentials
from publish.domain.errors import CredentialsError

# The kubelet swaps about once a minute, so this many swaps during one read have another cause.
_MAX_SWAPS = 1000
_DATA = "..data"


class SecretDirectory:
    """`secret:DIR`, a Secret as the kubelet mounts it, for which anyone may list DIR."""

    def __init__(self, name: str, path: bytes) -> None:
        """`name` is for messages; `path` is absolute."""
        self.name = name
        self._path = path

    def read(self, budget: float) -> Credentials:  # noqa: ARG002  (local; the caller has a deadline)
        """The fields, all of one generation. Raises SourceUnavailable or CredentialsError."""
        with open_directory(self._path) as directory:
            for _ in range(_MAX_SWAPS):
                fields = _read_mounted(directory)
                if fields is not None:
                    return parse_credentials(fields)
        raise CredentialsError(f"{_DATA} is dangling, or kept changing while being read")


def _read_mounted(directory: int) -> dict[str, str] | None:
    """The fields; None if the Secret was replaced meanwhile.

    To update it, the kubelet writes a new folder, renames a link to it over `..data`, creates and removes
    links in DIR for fields that came and went, and removes the old folder. So the folder behind `..data`
    is the Secret, and links beside it may be behind or ahead (kubernetes, pkg/volume/util/atomic_writer.go).
    """
    names = {name for name in names_in(directory) if not name.startswith("..")}
    try:
        generation = _open_generation(directory)
    except FileNotFoundError:
        return None if _is_there(_DATA, directory) else read_fields(directory, names, FIELDS, WRITABLE)
    except OSError as fault:
        raise CredentialsError(f"cannot open {_DATA}: {fault.strerror}") from fault
    try:
        in_data = {name for name in names_in(generation) if not name.startswith("..")}
        fields = read_fields(generation, in_data, FIELDS, WRITABLE)
        extra = {name for name in names - in_data if not _leads_into_data(name, directory)}
        fields |= read_fields(directory, extra, FIELDS, WRITABLE)
    except CredentialsError:
        if _is_current(generation, directory):
            raise
        return None
    else:
        return fields if _is_current(generation, directory) else None
    finally:
        os.close(generation)


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
