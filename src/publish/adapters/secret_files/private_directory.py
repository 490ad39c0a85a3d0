"""`file:DIR`: a directory to which only its owner has access."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from publish.adapters.secret_files.files import GROUP_AND_OTHERS, names_in, open_directory, read_fields
from publish.domain.credentials import FIELDS, Credentials, check_fields, parse_credentials
from publish.domain.errors import CredentialsError


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


def _read_private(path: bytes, fields: Collection[str]) -> dict[str, str]:
    with open_directory(path) as directory:
        status = os.fstat(directory)
        if status.st_mode & GROUP_AND_OTHERS:
            mode = stat.S_IMODE(status.st_mode)
            raise CredentialsError(f"group or others have access to the directory (run chmod 700); mode: {mode:04o}")
        if status.st_uid not in {0, os.geteuid()}:
            raise CredentialsError(
                f"the directory belongs to neither you ({os.geteuid()}) nor root; owner: {status.st_uid}"
            )
        return read_fields(directory, names_in(directory), fields, GROUP_AND_OTHERS)
