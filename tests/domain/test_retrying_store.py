"""A request is sent until it is answered, refused for good, or out of time."""

from __future__ import annotations

from collections.abc import Callable

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
    TimedOut,
    Unreachable,
)
from publish.domain.ports import Namespace, Store
from publish.domain.retry import RetryLimits
from publish.domain.retrying_store import Refresh
from tests.support.fakes import FakeClock, FakeRandom, FakeStore
from tests.support.faults import Fault, FaultyStore
from tests.support.retrying import retrying


def create(store: Store) -> None:
    store.create(Namespace.PUB, b"x")


def failing(faults: list[StoreFault]) -> FakeStore:
    """A store whose `create` raises the faults first, one a call."""

    class Failing(FakeStore):
        def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
            if faults:
                raise faults.pop(0)
            super().create(namespace, name, content)

    return Failing()


@given(
    st.lists(st.sampled_from([Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.CONFLICT, Fault.RIVAL_WRITES]), max_size=8)
)
def test_a_write_that_returns_has_happened_whatever_was_lost(schedule: list[Fault]) -> None:
    """s3.8, s3.9, s3.10: and it gives up only after four conflicts."""
    inner = FakeStore()
    store = FaultyStore(inner, schedule)
    try:
        create(retrying(store))
    except AlreadyExists:
        assert Fault.LOST_REPLY in schedule or Fault.RIVAL_WRITES in schedule
    except Conflict:
        assert schedule.count(Fault.CONFLICT) >= 4
        return
    assert b"x" in inner.names[Namespace.PUB]


def test_a_request_ends_when_the_timeout_is_over() -> None:
    """s3.8, s3.11: naming the step and the limit."""
    clock = FakeClock()
    store = retrying(FaultyStore(FakeStore(), [Fault.LOST_REQUEST] * 1000), clock=clock)
    with pytest.raises(TimedOut, match=r"create pub/x: .*-timeout 300s.*request lost"):
        create(store)
    assert 280 < clock.time - 1000 < 300


def test_requests_share_the_time_until_it_is_restarted() -> None:
    """s3.11: each scan of a watch has its own time."""
    clock = FakeClock()
    store = retrying(failing([NotApplied("503"), NotApplied("503")]), clock=clock)
    clock.time += 299.9
    with pytest.raises(TimedOut):
        create(store)
    store.restart(clock.time)
    create(store)


def test_an_unreachable_server_ends_the_request_with_its_own_error() -> None:
    """s3.8: after a tenth of the time."""
    clock = FakeClock()
    store = retrying(failing([Unreachable("connection refused")] * 1000), clock=clock)
    with pytest.raises(Unreachable):
        create(store)
    assert 30 <= clock.time - 1000 < 45


def test_waits_are_drawn_from_the_schedule() -> None:
    """s3.10: for a conflict, 50 to 100, 100 to 200 and 200 to 400 ms."""
    random = FakeRandom()
    with pytest.raises(Conflict):
        create(retrying(failing([Conflict("x")] * 4), random=random))
    assert random.drawn == [(0.05, 0.1), (0.1, 0.2), (0.2, 0.4)]


def rejection(message: str, *, refreshable: bool = True) -> CredentialsRejected:
    return CredentialsRejected(message, "ExpiredToken", refreshable=refreshable)


def test_rejected_credentials_are_refreshed_once_for_each_request() -> None:
    """s3.12."""
    refreshes: list[str] = []
    faults: list[StoreFault] = [rejection("again")]
    old, fresh = failing([rejection("expired")]), failing(faults)
    rejected: list[Store] = []

    def refresh(refused: CredentialsRejected, store: Store) -> Store:
        refreshes.append(str(refused))
        rejected.append(store)
        return fresh

    store = retrying(old, refresh=refresh)
    with pytest.raises(CredentialsRejected, match="again"):
        create(store)
    faults.append(rejection("much later"))
    create(store)
    assert refreshes == ["expired", "much later"]
    assert rejected == [old, fresh]
    assert b"x" in fresh.names[Namespace.PUB]


def never(refused: CredentialsRejected, _: Store) -> Store:
    raise AssertionError(refused)


@pytest.mark.parametrize(("refreshable", "refresh"), [(True, None), (False, never)])
def test_a_rejection_that_cannot_be_refreshed_is_raised_at_once(refreshable: bool, refresh: Refresh | None) -> None:  # noqa: FBT001
    """s3.12."""
    with pytest.raises(CredentialsRejected):
        create(retrying(failing([rejection("x", refreshable=refreshable)]), refresh=refresh))


class Reports(list[tuple[str, str, float]]):
    """What `on_retry` was called with."""

    def __call__(self, step: str, fault: StoreFault, remaining: float) -> None:
        self.append((step, str(fault), remaining))


def test_a_retry_is_reported_once_until_a_request_succeeds() -> None:
    """s3.8."""
    reports = Reports()
    faults: list[StoreFault] = [NotApplied("503"), OutcomeUnknown("cut off"), Unreachable("refused")]
    store = retrying(failing(faults), on_retry=reports)
    create(store)
    assert reports == [("create pub/x", "503", 300.0)]
    faults += [Unreachable("refused"), NotApplied("503")]
    with pytest.raises(AlreadyExists):
        create(store)
    assert reports[1:] == [("create pub/x", "refused", 30.0)]
    faults += [NotApplied("503")]
    with pytest.raises(AlreadyExists):
        create(store)
    assert len(reports) == 3


def test_neither_a_conflict_nor_a_final_fault_is_reported_as_a_retry() -> None:
    """s3.10."""
    reports = Reports()
    create(retrying(failing([Conflict("in flight")]), on_retry=reports))
    with pytest.raises(PermanentFault):
        create(retrying(failing([PermanentFault("denied")]), on_retry=reports))
    assert reports == []


def test_a_removal_whose_first_reply_was_lost_counts_as_found() -> None:
    """s3.8, prune.1."""
    inner = FakeStore()
    inner.files[b"run/1/x"] = b""
    store = retrying(FaultyStore(inner, [Fault.LOST_REPLY]))
    assert store.remove_tree(b"run/1", ()) == (True, False)
    assert store.remove_tree(b"run/1", ()) == (False, False)


def test_every_call_of_the_port_is_retried_and_named() -> None:
    """s3.8, s3.11."""
    inner = FakeStore()
    inner.files = {b"run/1/x": b"12345"}
    reports = Reports()

    def check(request: Callable[[Store], object], answer: object) -> None:
        store = retrying(FaultyStore(inner, [Fault.LOST_REQUEST] * 3), on_retry=reports)
        assert request(store) == answer

    check(lambda store: store.list_entries(Namespace.PUB, None), ([], None))
    check(lambda store: store.create(Namespace.PUB, b"x"), None)
    check(lambda store: store.remove_entries(Namespace.PUB, [b"x"]), {})
    check(lambda store: store.save_exists(b"run/1"), answer=True)
    check(lambda store: store.list_directories(b"run", None), ([b"1"], None))
    check(lambda store: store.list_directories(b"", None), ([b"run"], None))
    check(lambda store: store.exists(b"run/1/y"), answer=False)
    check(lambda store: store.size(b"run/1/x"), 5)
    check(lambda store: store.read(b"run/1/x", 3), b"123")
    check(lambda store: store.remove_tree(b"run/1", ()), (True, False))
    assert [step for step, _, _ in reports] == [
        "list pub/",
        "create pub/x",
        "remove 1 from pub/",
        "look for run/1",
        "list run/",
        "list the root",
        "look for run/1/y",
        "look for run/1/x",
        "read run/1/x",
        "remove run/1",
    ]


def test_the_calls_that_look_at_files_are_passed_on() -> None:
    """s3.8"""
    inner = FakeStore()
    inner.files = {b"run/1/x": b"12345", b"run/file": b""}
    store = retrying(inner)
    assert store.list_files_in(b"run", None) == ([b"file"], None)
    assert store.list_files_in(b"", None) == ([], None)
    assert [file.path for file in store.list_files(b"run/1", None).files] == [b"x"]
    assert store.version(b"run/1/y") is None
    assert store.read_range(b"run/1/x", -2, 2) == b"45"


def test_the_message_of_a_time_out_names_the_limit_that_holds() -> None:
    """s3.11, nfs.6: not every limit is that of -timeout."""
    for set_by in ("-timeout ", "tried again for "):
        store = retrying(failing([NotApplied("stale")] * 9), limits=RetryLimits(0.5, 0.5, set_by))
        with pytest.raises(TimedOut, match=rf"^create pub/x: out of time \({set_by}0\.5s\): stale$"):
            create(store)


QUESTIONS: dict[str, Callable[[Store], object]] = {
    "whether a save is there": lambda store: store.save_exists(b"save"),
    "whether a path is there": lambda store: store.exists(b"save/file"),
    "a size": lambda store: store.size(b"save/file"),
    "a version": lambda store: store.version(b"save/file"),
    "a file": lambda store: store.read(b"save/file", 9),
    "a part of a file": lambda store: store.read_range(b"save/file", 1, 2),
    "where a path leads": lambda store: store.real_path(b"save"),
    "whether a path is a link": lambda store: store.is_link(b"link"),
    "an owner": lambda store: store.owner_is_trusted(b"foreign", b""),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_REPLY])
def test_a_question_is_asked_until_it_is_answered(ask: Callable[[Store], object], fault: Fault) -> None:
    """s3.8, nfs.6: a fault is never an answer"""
    inner = FakeStore()
    inner.files[b"save/file"] = b"content"
    inner.links.add(b"link")
    inner.foreign.add(b"foreign")
    store = FaultyStore(inner, [fault] * 2)
    assert ask(retrying(store)) == ask(inner)
    assert store.sends == 3
