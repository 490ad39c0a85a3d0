"""A RetryingStore with a fake clock, as domain tests use it."""

from __future__ import annotations

from publish.domain.ports import Store
from publish.domain.retry import RetryLimits
from publish.domain.retrying_store import OnRetry, Refresh, RetryingStore
from tests.support.fakes import FakeClock, FakeRandom

LIMITS = RetryLimits(total=300.0, unreachable=30.0)


def retrying(
    store: Store,
    *,
    clock: FakeClock | None = None,
    random: FakeRandom | None = None,
    limits: RetryLimits = LIMITS,
    refresh: Refresh | None = None,
    on_retry: OnRetry = lambda _step, _fault, _remaining: None,
) -> RetryingStore:
    clock = clock or FakeClock()
    return RetryingStore(
        store, clock, random or FakeRandom(), limits, started=clock.now(), refresh=refresh, on_retry=on_retry
    )
