from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.credential_refresh import CredentialRefresher
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, CredentialsRejected
from publish.domain.ports import Store
from tests.support.fakes import FakeStore

FIRST = Credentials("key", "secret", "token", "http://store:8333", "us-east-1")
REFUSAL = CredentialsRejected("PUT: ExpiredToken", "ExpiredToken", refreshable=True, resend_unchanged=True)
MISMATCH = CredentialsRejected("PUT: SignatureDoesNotMatch", "SignatureDoesNotMatch", refreshable=True)


class Run:
    """A refresher whose source returns `answer`, and what it logged and connected with."""

    def __init__(self, answer: Credentials | CredentialsError, first: Credentials = FIRST) -> None:
        self.answer = answer
        self.store = FakeStore()
        self.logged: list[str] = []
        self.connected: list[Credentials] = []
        self.refresher = CredentialRefresher(first, self.resolve, self.connect, self.logged.append)

    def refresh(self, rejection: CredentialsRejected) -> Store:
        """As for a request that was sent to the latest store."""
        return self.refresher(rejection, self.store)

    def resolve(self) -> tuple[str, Credentials]:
        if isinstance(self.answer, CredentialsError):
            raise self.answer
        return "file:/creds", self.answer

    def connect(self, credentials: Credentials) -> FakeStore:
        self.connected.append(credentials)
        self.store = FakeStore()
        return self.store


def test_the_store_is_connected_with_fresh_credentials() -> None:
    """s3.12: the two lines, in this order"""
    fresh = FIRST._replace(access_key_id="new", secret_access_key="newer", session_token=None)
    run = Run(fresh)
    assert run.refresh(REFUSAL) is run.store
    assert run.connected == [fresh]
    assert run.logged == [
        "the store rejected the credentials (ExpiredToken); resolving the sources again",
        "now using credentials from file:/creds",
    ]


@given(st.integers(1, 5))
def test_credentials_can_be_refreshed_any_number_of_times(times: int) -> None:
    """s3.12"""
    run = Run(FIRST)
    for _ in range(times):
        assert run.refresh(REFUSAL) is run.store
    assert len(run.connected) == times
    assert len(run.logged) == 2 * times


@pytest.mark.parametrize(
    ("first", "now", "why"),
    [
        (FIRST, FIRST._replace(endpoint="http://other:8333"), "endpoint"),
        (FIRST, FIRST._replace(endpoint=None), "endpoint"),
        (FIRST._replace(endpoint=None), FIRST, "endpoint"),
        (FIRST, FIRST._replace(region="eu-west-1"), "region"),
        (FIRST._replace(region="eu-west-1"), FIRST, "region"),
    ],
)
def test_another_endpoint_or_region_is_refused_and_the_source_is_named(
    first: Credentials, now: Credentials, why: str
) -> None:
    """s3.12"""
    run = Run(now, first)
    with pytest.raises(CredentialsError) as raised:
        run.refresh(REFUSAL)
    # cli.9: no value of a field is shown.
    assert str(raised.value) == f"file:/creds: its {why} differs from the one this run started with"
    assert run.connected == []
    assert len(run.logged) == 1


def test_requests_that_are_rejected_together_refresh_the_credentials_once() -> None:
    """s3.12: several are under way when credentials rotate."""
    run = Run(FIRST._replace(secret_access_key="new"))
    first = run.store
    fresh = run.refresher(MISMATCH, first)
    assert run.refresher(MISMATCH, first) is fresh
    assert len(run.connected) == 1
    run.answer = FIRST._replace(secret_access_key="newer")
    newer = run.refresher(MISMATCH, fresh)
    assert newer is not fresh
    assert run.refresher(MISMATCH, first) is run.refresher(MISMATCH, fresh) is newer
    assert len(run.connected) == 2


def test_without_a_source_the_refresh_fails() -> None:
    """s3.12"""
    run = Run(CredentialsError("no source answered"))
    with pytest.raises(CredentialsError, match="no source answered"):
        run.refresh(REFUSAL)
    assert run.connected == []


def test_unchanged_credentials_are_reported_and_used_again_for_some_codes() -> None:
    """watch.11"""
    run = Run(FIRST)
    assert run.refresh(REFUSAL) is run.store
    assert run.logged[1] == "the credentials of file:/creds are unchanged"


def test_for_other_codes_unchanged_credentials_are_not_used_again() -> None:
    """watch.11: also after they have changed once."""
    run = Run(FIRST)
    with pytest.raises(CredentialsRejected) as raised:
        run.refresh(MISMATCH)
    assert str(raised.value) == "PUT: SignatureDoesNotMatch; the credentials of file:/creds are unchanged"
    assert run.connected == []
    run.answer = FIRST._replace(secret_access_key="new")
    assert run.refresh(MISMATCH) is run.store
    with pytest.raises(CredentialsRejected, match="unchanged"):
        run.refresh(MISMATCH)


def test_no_secret_is_logged() -> None:
    """cli.9"""
    run = Run(FIRST._replace(secret_access_key="canary", session_token="canary"))
    run.refresh(REFUSAL)
    assert "canary" not in "".join(run.logged)
