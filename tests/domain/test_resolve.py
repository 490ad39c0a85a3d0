"""The latest publication is found, whatever else is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.entry import Entry
from publish.domain.errors import ConfigError, FormatError
from publish.domain.ports import Namespace
from publish.domain.publish import publish_save
from publish.domain.resolve import latest
from tests.support import strategies
from tests.support.fakes import FakeReport, FakeStore
from tests.support.faults import Fault, FaultyStore
from tests.support.retrying import retrying


@given(st.sets(strategies.entries, max_size=30), st.integers(1, 7))
def test_the_greatest_epoch_and_step_wins_over_any_number_of_pages(log: set[Entry], page_size: int) -> None:
    """L6, resolve.1."""
    store = FakeStore(page_size)
    store.areas[Namespace.PUB] = {entry.name for entry in log}
    assert latest(store) == max(log, default=None, key=lambda entry: (entry.epoch, entry.step, entry.name))


def test_a_foreign_name_on_any_page_is_an_error() -> None:
    """L4, resolve.3."""
    store = FakeStore(page_size=1)
    store.areas[Namespace.PUB] = {b"zzz", Entry.of(1, 1, b"a").name}
    with pytest.raises(FormatError, match="zzz"):
        latest(store)


def test_a_removal_on_record_is_not_read() -> None:
    """L9: nobody but prune reads it."""
    store = FakeStore()
    store.areas[Namespace.PRUNE] = {Entry.of(9, 9, b"a").name, b"foreign"}
    assert latest(store) is None


@given(st.lists(st.sampled_from([Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.NONE]), max_size=6))
def test_lost_replies_never_hide_a_publication(schedule: list[Fault]) -> None:
    """S2, resolve.3."""
    store = FakeStore(page_size=1)
    entries = [Entry.of(epoch, 1, b"a") for epoch in range(3)]
    store.areas[Namespace.PUB] = {entry.name for entry in entries}
    assert latest(retrying(FaultyStore(store, schedule))) == entries[-1]


def publish(store: FakeStore, entry: Entry) -> list[str]:
    report = FakeReport()
    publish_save(store, report, entry)
    return [said for said, _ in report.said]


def test_a_save_is_published_once() -> None:
    """publish.4."""
    store = FakeStore()
    store.files[b"run/5/x"] = b""
    entry = Entry.of(1, 5, b"run/5")
    assert publish(store, entry) == ["published"]
    assert publish(store, entry) == ["already"]
    assert store.areas[Namespace.PUB] == {entry.name}


def test_a_save_that_is_not_there_is_not_published() -> None:
    """publish.2."""
    store = FakeStore()
    with pytest.raises(ConfigError, match="no save to publish: run/5"):
        publish(store, Entry.of(1, 5, b"run/5"))
    assert store.areas[Namespace.PUB] == set()


@pytest.mark.parametrize("path", [b"prune/x", b"a\nb", b"d" * 134])
def test_a_path_that_may_not_be_written_is_refused_before_anything_is(path: bytes) -> None:
    """L8."""
    store = FakeStore()
    store.files[path] = b""
    with pytest.raises(ConfigError):
        publish(store, Entry.of(1, 5, path))
    assert store.areas[Namespace.PUB] == set()
