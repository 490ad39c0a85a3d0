"""The probe accepts a correct store and detects each kind of broken one, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import (
    AlreadyExists,
    Conflict,
    CredentialsRejected,
    NotApplied,
    OutcomeUnknown,
    PermanentFault,
    PublishError,
    TimedOut,
    Unreachable,
)
from publish.domain.ports import Namespace, Page
from publish.domain.probe import ROUNDS, WRITERS, ProbeFailed, Retry, probe
from publish.domain.retry import RetryLimits
from tests.support.fakes import FakeRandom, FakeStore
from tests.support.retrying import retrying

In = TypeVar("In")
Out = TypeVar("Out")

STEPS = ["write", "read", "conditional write", "list", "delete"]


class Objects:
    """A store of objects. `before` and `after` are called with a request's step and how many came before it."""

    def __init__(self) -> None:
        self.objects: dict[bytes, bytes] = {}
        self.names_in_pub: list[list[bytes]] = [[Entry.of(1, 1, b"a").name], [Entry.of(1, 2, b"a").name]]
        self.asked: list[str] = []
        self.before: Callable[[str, int], None] = lambda step, count: None
        self.after: Callable[[str, int], None] = lambda step, count: None

    def put(
        self, path: bytes, body: bytes, *, only_if_new: bool, before_send: Callable[[], None] = lambda: None
    ) -> None:
        before_send()
        with self._request("conditional write" if only_if_new else "write"):
            if only_if_new and not self.accepts(path, body):
                raise AlreadyExists("taken")
            self.objects[path] = body

    def accepts(self, path: bytes, body: bytes) -> bool:
        return path not in self.objects

    def hold_connection(self, path: bytes, until: Callable[[], None]) -> None:
        assert path in self.objects
        with self._request("connect"):
            until()

    def read(self, path: bytes, limit: int) -> bytes | None:
        with self._request("read"):
            return self.objects[path][:limit] if path in self.objects else None

    def delete(self, path: bytes) -> None:
        with self._request("delete"):
            self.objects.pop(path, None)

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        with self._request("list"):
            assert namespace is Namespace.PUB
            page = int(token or 0)
            return Page(self.names_in_pub[page], str(page + 1) if page + 1 < len(self.names_in_pub) else None)

    def _request(self, step: str) -> _Hooks:
        return _Hooks(self, step)


class _Hooks:
    def __init__(self, store: Objects, step: str) -> None:
        self._store = store
        self._step = step

    def __enter__(self) -> None:
        self._count = self._store.asked.count(self._step)
        self._store.asked.append(self._step)
        self._store.before(self._step, self._count)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._store.after(self._step, self._count)


def one_by_one(work: Callable[[In, Callable[[], None]], Out], items: Iterable[In]) -> list[Out]:
    return [work(item, lambda: None) for item in items]


def run(store: Objects, retry: Retry | None = None) -> None:
    probe(retry or retrying(FakeStore()).retry, store, FakeRandom(), one_by_one)


def failing(step: str, fault: PublishError) -> Callable[[str, int], None]:
    """Raises `fault` at the first request of a step, and at its tries to come."""
    failed: list[int] = []

    def before(asked: str, count: int) -> None:
        if asked == step and (count == 0 or failed):
            failed.append(count)
            raise fault

    return before


def test_a_correct_store_passes_and_the_probe_leaves_nothing() -> None:
    """probe.2, probe.3, probe.4"""
    store = Objects()
    run(store)
    assert store.objects == {}
    assert [step for step in STEPS if step in store.asked] == STEPS
    assert store.asked.count("list") == 2
    assert store.asked.count("conditional write") == 1 + ROUNDS * WRITERS
    assert store.asked.count("connect") == ROUNDS * WRITERS


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "fault", [PermanentFault("no"), CredentialsRejected("unknown", "InvalidAccessKeyId", refreshable=True)]
)
def test_a_step_that_fails_is_named_and_what_was_written_is_removed(step: str, fault: PublishError) -> None:
    """probe.1, probe.4"""
    store = Objects()
    failed: list[int] = []

    def before(asked: str, count: int) -> None:
        if asked == step and not failed:
            failed.append(count)
            raise fault

    store.before = before
    with pytest.raises(ProbeFailed, match=f"^probe: {step}: {fault}$"):
        run(store)
    assert store.objects == {}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", [NotApplied("busy"), OutcomeUnknown("cut off"), Conflict("another")])
def test_a_transient_fault_is_retried(step: str, fault: PublishError) -> None:
    """s3.8, s3.10"""
    store = Objects()

    def before(asked: str, count: int) -> None:
        if asked == step and count == 0:
            raise fault

    store.before = before
    run(store)
    assert store.objects == {}


def test_a_store_that_overwrites_an_object_does_not_honour_conditional_writes() -> None:
    """probe.2"""
    store = Objects()
    store.accepts = lambda path, body: True  # type: ignore[method-assign]  # a store that does not check
    with pytest.raises(ProbeFailed, match=r"^probe: conditional write: the store does not honour conditional writes"):
        run(store)
    assert store.objects == {}


@pytest.mark.parametrize("winners", [2, WRITERS])
def test_a_store_that_checks_before_it_writes_fails_the_race(winners: int) -> None:
    """probe.3"""
    store = Objects()
    # The first writers check before any of them has written.
    store.accepts = lambda path, body: (  # type: ignore[method-assign]  # a store whose check and write are two steps
        b"-race-" in path and store.asked.count("conditional write") <= 1 + winners
    )
    with pytest.raises(ProbeFailed, match=f"when writers race: {winners} of {WRITERS} created the same name"):
        run(store)
    assert store.objects == {}


def test_a_race_without_a_winner_is_a_failure() -> None:
    """probe.3"""
    store = Objects()
    store.accepts = lambda path, body: False  # type: ignore[method-assign]  # a store that accepts no writer
    with pytest.raises(ProbeFailed, match=f"when writers race: 0 of {WRITERS}"):
        run(store)


def test_a_race_whose_winner_is_not_the_object_kept_is_a_failure() -> None:
    """probe.3"""
    store = Objects()

    def after(asked: str, count: int) -> None:
        if asked == "conditional write" and count == 1:
            (raced,) = (path for path in store.objects if b"-race-" in path)
            store.objects[raced] = b"of another writer"

    store.after = after
    with pytest.raises(ProbeFailed, match="when writers race"):
        run(store)


@pytest.mark.parametrize("writer", range(1, 1 + WRITERS))
def test_a_writer_whose_reply_was_lost_is_recognised_by_its_body(writer: int) -> None:
    """probe.4: the winner is told that the name is taken, by its own object."""
    store = Objects()

    def before(asked: str, count: int) -> None:
        # All earlier writers meet a lasting conflict, so that this one wins.
        if asked == "conditional write" and 1 <= count < 1 + 4 * (writer - 1):
            raise Conflict("another is at it")

    def after(asked: str, count: int) -> None:
        if asked == "conditional write" and count == 1 + 4 * (writer - 1):
            raise OutcomeUnknown("no reply")

    store.before, store.after = before, after
    run(store)
    assert store.objects == {}


def test_reading_back_different_data_is_a_failure() -> None:
    """probe.2"""
    store = Objects()

    def after(asked: str, count: int) -> None:
        if asked == "write":
            store.objects = dict.fromkeys(store.objects, b"something else")

    store.after = after
    with pytest.raises(ProbeFailed, match=r"^probe: read: read back different data"):
        run(store)
    assert store.objects == {}


def test_an_object_that_is_missing_when_read_back_is_a_failure() -> None:
    """probe.2, s3.3"""
    store = Objects()
    store.after = lambda asked, count: store.objects.clear() if asked == "write" else None
    with pytest.raises(ProbeFailed, match=r"^probe: read: the object is not there after it was written$"):
        run(store)


def test_an_unrecognised_entry_in_the_log_is_a_failure() -> None:
    """layout.4"""
    store = Objects()
    store.names_in_pub = [[b"README"]]
    with pytest.raises(ProbeFailed, match=r"^probe: list: unrecognised entry .*: README"):
        run(store)
    assert store.objects == {}


def test_an_unreachable_store_is_not_asked_to_clean_up() -> None:
    """s3.8: a tenth of the time for the step, and none for objects that cannot exist."""
    store = Objects()
    store.before = failing("write", Unreachable("refused"))
    with pytest.raises(ProbeFailed, match=r"^probe: write: refused"):
        run(store)
    assert set(store.asked) == {"write"}


def test_a_timeout_names_the_step_once() -> None:
    """s3.11"""
    store = Objects()
    store.before = failing("read", NotApplied("busy"))
    retry = retrying(FakeStore(), limits=RetryLimits(total=5.0, unreachable=0.5)).retry
    with pytest.raises(TimedOut, match=r"^probe: read: out of time \(-timeout 5s\): busy"):
        run(store, retry)
    assert store.objects == {}


def test_a_failed_clean_up_does_not_hide_the_failed_step() -> None:
    """probe.4"""
    store = Objects()

    def before(asked: str, count: int) -> None:
        if asked in ("list", "delete"):
            raise PermanentFault(f"no {asked}")

    store.before = before
    with pytest.raises(ProbeFailed, match=r"^probe: list: no list$"):
        run(store)


def test_two_probes_use_different_names() -> None:
    """probe.2: fresh names."""
    store = Objects()
    used: set[bytes] = set()

    def after(asked: str, count: int) -> None:
        used.update(store.objects)

    store.after = after
    entropy = FakeRandom()
    for _ in range(2):
        probe(retrying(FakeStore()).retry, store, entropy, one_by_one)
    assert len(used) == 2 * (1 + ROUNDS)
    assert not [path for path in used if b"/" in path]
