"""Requests over a store, with a fake clock: how domain tests ask."""

from __future__ import annotations

from publish.domain.ports import Store
from publish.domain.requests import Renew, Requests
from publish.domain.retry import Patience
from tests.support.fakes import FakeClock, FakeEntropy

PATIENCE = Patience(total=300.0, unreachable=30.0)


def asking(
    store: Store,
    *,
    clock: FakeClock | None = None,
    entropy: FakeEntropy | None = None,
    patience: Patience = PATIENCE,
    renew: Renew | None = None,
) -> Requests:
    clock = clock or FakeClock()
    return Requests(store, clock, entropy or FakeEntropy(), patience, started=clock.now(), renew=renew)
