"""Requests over a store, with a fake clock: how domain tests ask."""

from __future__ import annotations

from publish.domain.ports import Store
from publish.domain.retry import RetryLimits
from publish.domain.retrying_store import Renew, Requests
from tests.support.fakes import FakeClock, FakeRandom

PATIENCE = RetryLimits(total=300.0, unreachable=30.0)


def asking(
    store: Store,
    *,
    clock: FakeClock | None = None,
    entropy: FakeRandom | None = None,
    patience: RetryLimits = PATIENCE,
    renew: Renew | None = None,
) -> Requests:
    clock = clock or FakeClock()
    return Requests(store, clock, entropy or FakeRandom(), patience, started=clock.now(), renew=renew)
