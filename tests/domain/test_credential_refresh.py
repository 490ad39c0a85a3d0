from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.credential_refresh import CredentialRefresher
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, CredentialsRejected
from tests.support.fakes import FakeStore

FIRST = Credentials("key", "secret", "token", "http://store:8333", "us-east-1")
REFUSAL = CredentialsRejected("PUT: ExpiredToken", "ExpiredToken", refreshable=True)


class Run:
    """A renewal whose source answers with `answer`, and what it said and did."""

    def __init__(self, answer: Credentials | CredentialsError, first: Credentials = FIRST) -> None:
        self.answer = answer
        self.store = FakeStore()
        self.said: list[str] = []
        self.connected: list[Credentials] = []
        self.refresh = CredentialRefresher(first, self.resolve, self.connect, self.said.append)

    def resolve(self) -> tuple[str, Credentials]:
        if isinstance(self.answer, CredentialsError):
            raise self.answer
        return "file:/creds", self.answer

    def connect(self, credentials: Credentials) -> FakeStore:
        self.connected.append(credentials)
        return self.store


def test_the_store_is_reached_with_what_the_sources_say_now() -> None:
    """S6: the two lines, in this order"""
    renewed = FIRST._replace(access_key_id="new", secret_access_key="newer", session_token=None)
    run = Run(renewed)
    assert run.refresh(REFUSAL) is run.store
    assert run.connected == [renewed]
    assert run.said == [
        "the store rejected the credentials (ExpiredToken); resolving the sources again",
        "now using credentials from file:/creds",
    ]


@given(st.integers(1, 5))
def test_it_is_done_as_often_as_a_run_needs_it(times: int) -> None:
    """S6"""
    run = Run(FIRST)
    for _ in range(times):
        assert run.refresh(REFUSAL) is run.store
    assert len(run.connected) == times
    assert len(run.said) == 2 * times


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
def test_another_endpoint_or_region_is_refused_and_the_source_named(
    first: Credentials, now: Credentials, why: str
) -> None:
    """S6"""
    run = Run(now, first)
    with pytest.raises(CredentialsError) as raised:
        run.refresh(REFUSAL)
    # F9: the value of no field is told.
    assert str(raised.value) == f"file:/creds: its {why} differs from the one this run started with"
    assert run.connected == []
    assert len(run.said) == 1


def test_no_source_ends_it() -> None:
    """S6"""
    run = Run(CredentialsError("no source answered"))
    with pytest.raises(CredentialsError, match="no source answered"):
        run.refresh(REFUSAL)
    assert run.connected == []


def test_nothing_that_it_says_is_a_secret() -> None:
    """F9"""
    run = Run(FIRST._replace(secret_access_key="canary", session_token="canary"))
    run.refresh(REFUSAL)
    assert "canary" not in "".join(run.said)
