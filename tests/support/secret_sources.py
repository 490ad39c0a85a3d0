"""What the tests of `secret:` and `file:` share: how each is read, and what a refusal may hold."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from publish.adapters.secret_files import PrivateDirectory, SecretDirectory
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, SourceUnavailable

CANARY = "canary-7f3a"
KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": CANARY}
CREDENTIALS = Credentials("AKIDEXAMPLE", CANARY, None, None, "us-east-1")
OTHER_USER = 65534

Read = Callable[[Path], Credentials]


def secret(path: Path) -> Credentials:
    return SecretDirectory(f"secret:{path}", os.fsencode(path)).read(1)


def private(path: Path) -> Credentials:
    return PrivateDirectory(f"file:{path}", os.fsencode(path)).read(1)


@contextmanager
def without_privilege() -> Iterator[None]:
    """Root may read everything, so what cannot be read is tested as another user."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(OTHER_USER)
    try:
        yield
    finally:
        os.seteuid(mine)


def refusal(read: Callable[[], object]) -> str:
    """What is said of something that is there and wrong."""
    with pytest.raises(CredentialsError) as raised:
        read()
    assert not isinstance(raised.value, SourceUnavailable)
    assert CANARY not in "".join(traceback.format_exception(raised.value))
    fault: BaseException | None = raised.value
    while fault is not None:
        assert CANARY not in repr(vars(fault)) + repr(fault.args)
        fault = fault.__context__
    return str(raised.value)
