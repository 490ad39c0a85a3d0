"""Sends a request to the store until it is answered, refused for good, or out of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from publish.domain.entry import Entry, to_text
from publish.domain.errors import CredentialsRejected, FormatError, StoreFault, TimedOut
from publish.domain.ports import Clock, Namespace, Page, Random, Store
from publish.domain.retry import Attempts, RetryLimits, next_wait

T = TypeVar("T")

# What a store says of credentials that were good once: expired, or rotated away (S6).
RENEWABLE = frozenset({"ExpiredToken", "InvalidAccessKeyId"})

Renew = Callable[[CredentialsRejected], Store]
Enter = Callable[[str], None]


class Requests:
    """The store, as the use cases ask it.

    `renew` gives the store with fresh credentials, or raises; None: a refusal is final.
    `enter` is told the step before each send, for whoever watches the time.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        entropy: Random,
        patience: RetryLimits,
        *,
        started: float,
        renew: Renew | None = None,
        enter: Enter = lambda _step: None,
    ) -> None:
        """`started`: the clock's moment, in seconds, from which `patience.total` counts."""
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._patience = patience
        self._started = started
        self._renew = renew
        self._enter = enter

    def start_over(self) -> None:
        """Counts the patience from now on: the next scan of a watch has its own time."""
        self._started = self._clock.now()

    def __call__(self, step: str, request: Callable[[Store], T]) -> T:
        """What `request` returns in the end; `step` names it in errors.

        Raises TimedOut, or what the store said last.
        """
        tries = Attempts()
        renewed = False
        while True:
            self._enter(step)
            sent = self._clock.now()
            try:
                return request(self._store)
            except CredentialsRejected as refusal:
                if renewed or self._renew is None or refusal.code not in RENEWABLE:
                    raise
                self._store = self._renew(refusal)
                renewed = True
            except StoreFault as fault:
                tries = tries.record(fault, sent)
                self._wait(step, fault, tries)

    def _wait(self, step: str, fault: StoreFault, tries: Attempts) -> None:
        now = self._clock.now()
        bounds = next_wait(fault, tries, now, self._patience)
        if bounds is None:
            raise fault
        wait = self._entropy.uniform(*bounds)
        if now + wait >= self._started + self._patience.total:
            raise TimedOut(f"{step}: out of time (-timeout {self._patience.total:g}s): {fault}") from fault
        self._clock.sleep(wait)


def pages(ask: Requests, step: str, page: Callable[[Store, str | None], Page]) -> Iterator[bytes]:
    """All names of a paged listing."""
    after: str | None = None
    while True:
        part = ask(step, lambda store, after=after: page(store, after))  # type: ignore[misc]
        yield from part.names
        if part.after is None:
            return
        after = part.after


def entries(ask: Requests, area: Namespace) -> Iterator[Entry]:
    """Every entry of an area, in no order. Raises FormatError, when all are read, for foreign names."""
    folder = to_text(area.value)
    foreign = []
    for name in pages(ask, f"list {folder}/", lambda store, after: store.list_entries(area, after)):
        try:
            yield Entry.parse(name)
        except FormatError as fault:
            foreign.append(str(fault))
    if foreign:
        first, *more = (FormatError(f"{folder}/: {fault}") for fault in sorted(foreign))
        first.more = more
        raise first
