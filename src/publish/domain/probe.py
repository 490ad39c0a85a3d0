"""Tests whether a store does what the log relies on, with objects of its own beside the log.

The probe does not touch `pub/`. It removes what it wrote, also when a step fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists, Conflict, PublishError, StoreFault, TimedOut, Unreachable
from publish.domain.light_typing import NamedTuple, Protocol, TypeVar
from publish.domain.listing import pages
from publish.domain.ports import Namespace, Page, Random

In = TypeVar("In")
T = TypeVar("T")

# How many writers race for one name, and how often. On versitygw 1.7, where two of eight writers win every second
# race, five rounds found it 20 of 20 times, and one round on fresh connections 2 of 105 times.
WRITERS = 8
ROUNDS = 5
# In bytes; every object of the probe is shorter.
_MAX_BODY = 1000
_NOT_HONOURED = "the store does not honour conditional writes (If-None-Match: *)"


class ProbeStore(Protocol):
    """What the probe needs from a store: objects, by path below the root.

    Each call is one attempt and raises the errors that `ports.Store` describes.
    """

    def put(
        self, path: bytes, body: bytes, *, only_if_new: bool, before_send: Callable[[], None] = lambda: None
    ) -> None:
        """Writes an object. `only_if_new`: exclusively; raises AlreadyExists or Conflict.

        `before_send` is called when the request is ready to be sent.
        """

    def hold_connection(self, path: bytes, until: Callable[[], None]) -> None:
        """Reads an object; `until` is called while the response keeps a connection busy."""

    def read(self, path: bytes, limit: int) -> bytes | None:
        """As `ports.Store.read`."""

    def delete(self, path: bytes) -> None:
        """Removes an object if it exists. Idempotent."""

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        """As `ports.Store.list_entries`."""


class Retry(Protocol):
    """Sends a request until it is answered: `RetryingStore.retry`."""

    def __call__(self, step: str, request: Callable[[], T], /) -> T:
        """What `request` returns in the end. Raises TimedOut, naming `step`, or the last fault."""


class Race(Protocol):
    """Runs work at the same time, on each item."""

    def __call__(self, work: Callable[[In, Callable[[], None]], T], items: Iterable[In], /) -> Iterable[T]:
        """The results, in order. `work(item, meet)`: `meet` returns when each of the others has called it or ended."""


class ProbeFailed(StoreFault):
    """A step of the probe failed; the text names the step."""


class _Writer(NamedTuple):
    """A racing writer: the body that it wrote, and whether the store accepted it."""

    body: bytes
    accepted: bool


def probe(retry: Retry, store: ProbeStore, random: Random, race: Race) -> None:
    """Returns if the store can hold a log.

    Raises ProbeFailed, or TimedOut, naming the step: write, read, conditional write, list, delete.
    """
    _Probe(retry, store, race, random.token()).run()


class _Probe:
    def __init__(self, retry: Retry, store: ProbeStore, race: Race, token: str) -> None:
        self._retry = retry
        self._store = store
        self._race = race
        self._object = f"publish-probe-{token}".encode()
        self._written = [self._object]
        self._body = f"written by publish probe {token}".encode()

    def run(self) -> None:
        try:
            self._steps()
        except PublishError as failure:
            # An unreachable store holds nothing of the probe and would only time out again.
            if not isinstance(failure.__cause__, Unreachable):
                self._clean_up()
            raise

    def _clean_up(self) -> None:
        for path in self._written:
            # The failure of the step is the one to report.
            with suppress(PublishError):
                self._delete("delete", path)

    def _steps(self) -> None:
        with _step("write"):
            self._put("write", self._object, self._body, only_if_new=False)
        with _step("read"):
            content = self._read("read", self._object)
            if content is None:
                raise ProbeFailed("the object is not there after it was written")
            if content != self._body:
                raise ProbeFailed("read back different data than was written")
        with _step("conditional write"):
            self._write_again()
            for number in range(1, ROUNDS + 1):
                self._race_for(b"%s-race-%d" % (self._object, number))
        with _step("list"):
            for name in pages(self._list):
                Entry.parse(name)
        with _step("delete"):
            for path in self._written:
                self._delete("delete", path)

    def _write_again(self) -> None:
        with suppress(AlreadyExists):
            self._put("conditional write", self._object, b"again: " + self._body, only_if_new=True)
            raise ProbeFailed(f"{_NOT_HONOURED}: it overwrote an existing object")

    def _race_for(self, path: bytes) -> None:
        self._written.append(path)
        bodies = [b"writer %d of the race, %s" % (number, self._body) for number in range(WRITERS)]

        def write(body: bytes, meet: Callable[[], None]) -> _Writer:
            return self._write_in_race(path, body, meet)

        writers = list(self._race(write, bodies))
        kept = self._read("conditional write", path)
        # A writer whose first reply was lost is told that the name is taken, by its own object.
        winners = [writer for writer in writers if writer.accepted or writer.body == kept]
        if len(winners) != 1 or winners[0].body != kept:
            raise ProbeFailed(f"{_NOT_HONOURED} when writers race: {len(winners)} of {WRITERS} created the same name")

    def _write_in_race(self, path: bytes, body: bytes, meet: Callable[[], None]) -> _Writer:
        """Writes on a connection that has carried a request, at the same moment as the others."""
        connected, ready = _once(meet), _once(meet)
        self._retry("probe: conditional write", lambda: self._store.hold_connection(self._object, connected))
        try:
            self._put("conditional write", path, body, only_if_new=True, before_send=ready)
        except (AlreadyExists, Conflict):
            return _Writer(body, accepted=False)
        return _Writer(body, accepted=True)

    def _put(
        self, step: str, path: bytes, body: bytes, *, only_if_new: bool, before_send: Callable[[], None] = lambda: None
    ) -> None:
        self._retry(
            f"probe: {step}",
            lambda: self._store.put(path, body, only_if_new=only_if_new, before_send=before_send),
        )

    def _read(self, step: str, path: bytes) -> bytes | None:
        return self._retry(f"probe: {step}", lambda: self._store.read(path, _MAX_BODY))

    def _list(self, token: str | None) -> Page:
        return self._retry("probe: list", lambda: self._store.list_entries(Namespace.PUB, token))

    def _delete(self, step: str, path: bytes) -> None:
        self._retry(f"probe: {step}", lambda: self._store.delete(path))


def _once(call: Callable[[], None]) -> Callable[[], None]:
    """`call` for the first time, nothing for the tries after it."""
    calls = [call]

    def call_once() -> None:
        if calls:
            calls.pop()()

    return call_once


@contextmanager
def _step(name: str) -> Iterator[None]:
    """Prefixes a failure with the name of the step; TimedOut names it already."""
    try:
        yield
    except TimedOut:
        raise
    except PublishError as fault:
        raise ProbeFailed(f"probe: {name}: {fault}") from fault
