"""What the tests of the Vault source share: what it asks and gives, and what a fault of it is."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from publish.adapters.vault import VaultSource
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, SourceUnavailable
from tests.support.fake_vault import FakeVault, answers
from tests.support.fault_proxy import Exchange, Fault

SECRET_ID = "canary-secret-id"
CREDENTIALS = Credentials("AKIDEXAMPLE", "canary-secret-key", None, None, "us-east-1")
LOGGED_IN = "POST /v1/auth/approle/login"
READ = "GET /v1/secret/data/team/s3"
REVOKED = "POST /v1/auth/token/revoke-self"
NODES = "/etc/ssl/certs/ca-certificates.crt"


# Seconds, for a source that is expected to answer or to be refused at once.
PLENTY = 60.0


Make = Callable[..., VaultSource]


def failure(read: Callable[[], object]) -> CredentialsError:
    """What was raised, searched for secrets, and with all that hangs on it."""
    with pytest.raises(CredentialsError) as raised:
        read()
    error: BaseException | None = raised.value
    assert "canary" not in "".join(traceback.format_exception(raised.value))
    while error is not None:
        assert "canary" not in repr((error.args, vars(error)))
        error = error.__cause__ or error.__context__
    assert "\n" not in str(raised.value)
    return raised.value


def unavailable(read: Callable[[], object]) -> str:
    """The message of a source that is unavailable."""
    fault = failure(read)
    assert isinstance(fault, SourceUnavailable), fault
    return str(fault)


def invalid(read: Callable[[], object]) -> str:
    """The message of a source that is invalid."""
    fault = failure(read)
    assert not isinstance(fault, SourceUnavailable), fault
    return str(fault)


def to(target: str, status: int = 307) -> Fault:
    return answers(status, {"errors": []}, headers={"Location": target})


def along(server: FakeVault, status: int = 307) -> Fault:
    """A redirect to the same path on another server."""

    def fault(exchange: Exchange) -> None:
        to(server.address + exchange.asked.target, status)(exchange)

    return fault
