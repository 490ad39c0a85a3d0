"""Which failures are tried again, and after how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.errors import (
    AlreadyExists,
    Conflict,
    CredentialsRejected,
    NotApplied,
    OutcomeUnknown,
    PermanentFault,
    StoreFault,
    SymlinkInPath,
    TimedOut,
    Unreachable,
)
from publish.domain.ports import Namespace, Store
from publish.domain.retry import FIRST_WAIT, MAX_WAIT, Attempts, RetryLimits, next_wait
from publish.domain.retrying_store import Requests
from tests.support.fakes import FakeClock, FakeRandom, FakeStore
from tests.support.faults import Fault, FaultyStore
from tests.support.retrying import asking

PATIENCE = RetryLimits(total=300.0, unreachable=30.0)


def test_a_conflict_is_sent_four_times_with_growing_waits() -> None:
    """S4."""
    tries = Attempts()
    bounds = []
    for _ in range(4):
        tries = tries.record(Conflict("in flight"), 0.0)
        bounds.append(next_wait(Conflict("in flight"), tries, 0.0, PATIENCE))
    assert bounds == [(0.05, 0.1), (0.1, 0.2), (0.2, 0.4), None]


@given(st.integers(1, 5000), st.sampled_from([NotApplied("x"), OutcomeUnknown("x"), Unreachable("x")]))
def test_waits_grow_to_a_bound_and_are_spread(failures: int, fault: StoreFault) -> None:
    """S2."""
    bounds = next_wait(fault, Attempts(failures=failures), 0.0, PATIENCE)
    assert bounds is not None
    low, high = bounds
    assert 0 < low < high <= MAX_WAIT
    longer = next_wait(fault, Attempts(failures=failures + 1), 0.0, PATIENCE)
    assert longer is not None
    assert longer >= bounds
    assert next_wait(fault, Attempts(failures=1), 0.0, PATIENCE) == (FIRST_WAIT / 2, FIRST_WAIT)


@pytest.mark.parametrize(
    "fault", [AlreadyExists("x"), PermanentFault("x"), CredentialsRejected("x", "ExpiredToken"), SymlinkInPath(b"x")]
)
def test_an_answer_is_not_asked_for_again(fault: StoreFault) -> None:
    """S2, S7."""
    assert next_wait(fault, Attempts(failures=1), 0.0, PATIENCE) is None


@given(st.floats(0, 100), st.floats(0, 100))
def test_a_server_that_cannot_be_reached_is_tried_for_its_own_time(first: float, later: float) -> None:
    """S2: counted from the first failure of a row."""
    fault = Unreachable("refused")
    tries = Attempts().record(fault, first).record(fault, first + later)
    assert (next_wait(fault, tries, first + later, PATIENCE) is None) == (first + later - first >= PATIENCE.unreachable)


def test_an_answer_in_between_starts_that_time_again() -> None:
    """S2."""
    tries = Attempts().record(Unreachable("x"), 0.0).record(NotApplied("503"), 20.0).record(Unreachable("x"), 40.0)
    assert next_wait(Unreachable("x"), tries, 41.0, PATIENCE) is not None
    assert Attempts().record(Unreachable("x"), 0.0).record(Conflict("x"), 1.0).unreachable_since is None


def create(ask: Requests) -> None:
    ask("create pub/x", lambda store: store.create(Namespace.PUB, b"x"))


def failing(*faults: StoreFault) -> FakeStore:
    class Failing(FakeStore):
        def __init__(self) -> None:
            super().__init__()
            self.left = list(faults)

        def create(self, area: Namespace, name: bytes) -> None:
            if self.left:
                raise self.left.pop(0)
            super().create(area, name)

    return Failing()


@given(
    st.lists(st.sampled_from([Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.CONFLICT, Fault.RIVAL_WRITES]), max_size=8)
)
def test_a_write_that_is_reported_is_there_whatever_was_lost(schedule: list[Fault]) -> None:
    """S2, S3, S4: and it gives up only after four conflicts."""
    inner = FakeStore()
    store = FaultyStore(inner, schedule)
    try:
        create(asking(store))
    except AlreadyExists:
        assert Fault.LOST_REPLY in schedule or Fault.RIVAL_WRITES in schedule
    except Conflict:
        assert schedule.count(Fault.CONFLICT) >= 4
        return
    assert b"x" in inner.areas[Namespace.PUB]


def test_a_request_ends_when_the_time_of_the_verb_is_over() -> None:
    """S2, S5: naming the step and the limit."""
    clock = FakeClock()
    ask = asking(FaultyStore(FakeStore(), [Fault.LOST_REQUEST] * 1000), clock=clock)
    with pytest.raises(TimedOut, match=r"create pub/x: .*-timeout 300s.*lost on the way"):
        create(ask)
    assert 280 < clock.time - 1000 < 300


def test_a_second_request_has_what_the_first_left_until_the_time_starts_over() -> None:
    """S5, watch: a scan has its own time."""
    clock = FakeClock()
    ask = asking(failing(NotApplied("503"), NotApplied("503")), clock=clock)
    clock.time += 299.9
    with pytest.raises(TimedOut):
        create(ask)
    ask.start_over()
    create(ask)


def test_a_server_that_stays_away_ends_the_request_with_its_own_word() -> None:
    """S2: after a tenth of the time."""
    clock = FakeClock()
    ask = asking(failing(*[Unreachable("connection refused")] * 1000), clock=clock)
    with pytest.raises(Unreachable):
        create(ask)
    assert 30 <= clock.time - 1000 < 45


def test_waits_are_drawn_from_the_schedule() -> None:
    """S4: for a conflict, 50 to 100, 100 to 200 and 200 to 400 ms."""
    entropy = FakeRandom()
    with pytest.raises(Conflict):
        create(asking(failing(*[Conflict("x")] * 4), entropy=entropy))
    assert entropy.drawn == [(0.05, 0.1), (0.1, 0.2), (0.2, 0.4)]


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId"])
def test_a_refusal_is_renewed_once_for_each_request(code: str) -> None:
    """S6."""
    renewals: list[str] = []
    fresh = failing(CredentialsRejected("again", code))

    def renew(refusal: CredentialsRejected) -> Store:
        renewals.append(refusal.code)
        return fresh

    ask = asking(failing(CredentialsRejected("expired", code)), renew=renew)
    with pytest.raises(CredentialsRejected, match="again"):
        create(ask)
    fresh.left.append(CredentialsRejected("much later", code))  # type: ignore[attr-defined]  # the local class's own
    create(ask)
    assert renewals == [code, code]
    assert b"x" in fresh.areas[Namespace.PUB]


def test_other_refusals_and_verbs_without_renewal_fail_at_once() -> None:
    """S6."""
    with pytest.raises(CredentialsRejected):
        create(asking(failing(CredentialsRejected("x", "ExpiredToken"))))

    def renew(refusal: CredentialsRejected) -> Store:
        raise AssertionError(refusal)

    with pytest.raises(CredentialsRejected):
        create(asking(failing(CredentialsRejected("x", "SignatureDoesNotMatch")), renew=renew))
