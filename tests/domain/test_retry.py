"""Which faults are retried, and after how long."""

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
    Unreachable,
)
from publish.domain.retry import FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS, Attempts, RetryLimits, next_wait
from tests.support.retrying import LIMITS


def test_a_conflict_is_sent_four_times_with_growing_waits() -> None:
    """s3.10."""
    tries = Attempts()
    bounds = []
    for _ in range(4):
        tries = tries.record(Conflict("in flight"), 0.0)
        bounds.append(next_wait(Conflict("in flight"), tries, 0.0, LIMITS))
    assert bounds == [(0.05, 0.1), (0.1, 0.2), (0.2, 0.4), None]


@given(st.integers(1, 5000), st.sampled_from([NotApplied("x"), OutcomeUnknown("x"), Unreachable("x")]))
def test_waits_double_up_to_a_bound_and_are_spread(failures: int, fault: StoreFault) -> None:
    """s3.8."""
    bounds = next_wait(fault, Attempts(failures=failures), 0.0, LIMITS)
    assert bounds is not None
    low, high = bounds
    assert 0 < low < high <= MAX_WAIT_SECONDS
    longer = next_wait(fault, Attempts(failures=failures + 1), 0.0, LIMITS)
    assert longer is not None
    assert longer >= bounds
    assert next_wait(fault, Attempts(failures=1), 0.0, LIMITS) == (FIRST_WAIT_SECONDS / 2, FIRST_WAIT_SECONDS)


@pytest.mark.parametrize(
    "fault",
    [
        AlreadyExists("x"),
        PermanentFault("x"),
        CredentialsRejected("x", "ExpiredToken", refreshable=True),
        SymlinkInPath(b"x"),
    ],
)
def test_a_final_fault_is_not_retried(fault: StoreFault) -> None:
    """s3.8, s3.13."""
    assert next_wait(fault, Attempts(failures=1), 0.0, LIMITS) is None


@given(st.floats(0, 100), st.floats(0, 100))
def test_an_unreachable_server_is_tried_for_its_own_time(first: float, later: float) -> None:
    """s3.8: counted from the first of consecutive failures."""
    fault = Unreachable("refused")
    tries = Attempts().record(fault, first).record(fault, first + later)
    assert (next_wait(fault, tries, first + later, LIMITS) is None) == (first + later - first >= LIMITS.unreachable)


def test_an_answer_in_between_restarts_that_time() -> None:
    """s3.8."""
    tries = Attempts().record(Unreachable("x"), 0.0).record(NotApplied("503"), 20.0).record(Unreachable("x"), 40.0)
    assert next_wait(Unreachable("x"), tries, 41.0, LIMITS) is not None
    assert Attempts().record(Unreachable("x"), 0.0).record(Conflict("x"), 1.0).unreachable_since is None


def test_an_unreachable_server_is_tried_for_a_tenth_of_the_time_and_by_a_watch_for_all_of_it() -> None:
    """s3.8."""
    assert RetryLimits.for_timeout(300.0) == RetryLimits(300.0, 30.0)
    assert RetryLimits.for_timeout(300.0, long_running=True) == RetryLimits(300.0, 300.0)
    assert RetryLimits.for_timeout(300.0).connect_timeout == 30.0
    assert RetryLimits.for_timeout(2.0).connect_timeout == 1.0
