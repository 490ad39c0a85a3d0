"""Taking publications back, with and without the save."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.entry import Entry
from publish.domain.errors import ConfigError
from publish.domain.ports import Namespace
from publish.domain.prune import prune, prune_dry_run
from publish.domain.removal import RETRACTED
from publish.domain.retention import Policy
from publish.domain.retract import retract, retract_and_delete
from tests.support.fakes import FakeReport, FakeStore
from tests.support.faults import Crash, Fault, FaultyStore
from tests.support.retrying import retrying

SAVE = b"run/2"


def root() -> FakeStore:
    """Three saves, the second published twice."""
    store = FakeStore()
    for epoch, step in ((1, 1), (1, 2), (2, 2), (1, 3)):
        path = b"run/%d" % step
        store.names[Namespace.PUB].add(Entry.of(epoch, step, path).name)
        store.files[path + b"/trainer_state.json"] = b"{}"
        store.files[path + b"/weights"] = b"w"
    return store


def published(store: FakeStore) -> set[bytes]:
    return {Entry.parse(name).path for name in store.names[Namespace.PUB]}


def test_every_publication_is_taken_back_the_newest_first_and_the_save_stays() -> None:
    """retract.1"""
    store, report = root(), FakeReport()
    retract(retrying(store), report, SAVE)
    assert report.said == [("retracted", Entry.of(2, 2, SAVE)), ("retracted", Entry.of(1, 2, SAVE))]
    assert published(store) == {b"run/1", b"run/3"}
    assert SAVE + b"/weights" in store.files


def test_a_save_that_was_never_published_is_an_error() -> None:
    """retract.1"""
    for path in (b"run/4", b"run"):
        with pytest.raises(ConfigError, match="not a published save"):
            retract(retrying(root()), FakeReport(), path)
        with pytest.raises(ConfigError, match="not a published save"):
            retract_and_delete(retrying(root()), FakeReport(), path, map)


def test_a_publication_whose_save_is_gone_can_be_taken_back() -> None:
    """retract.1"""
    for delete in (False, True):
        store, report = root(), FakeReport()
        store.remove_tree(SAVE, ())
        if delete:
            assert retract_and_delete(retrying(store), report, SAVE, map)
        else:
            retract(retrying(store), report, SAVE)
        assert [what for what, _ in report.said] == ["retracted", "retracted"]
        assert published(store) == {b"run/1", b"run/3"}


def test_a_save_that_is_being_removed_is_not_taken_back_without_delete() -> None:
    """retract.1: a prune would remove it."""
    store = root()
    store.names[Namespace.PRUNE].add(Entry.of(1, 2, SAVE).name)
    with pytest.raises(ConfigError, match="being removed"):
        retract(retrying(store), FakeReport(), SAVE)
    assert len(store.names[Namespace.PUB]) == 4
    report = FakeReport()
    assert retract_and_delete(retrying(store), report, SAVE, map)
    assert report.all("removed") == [SAVE]
    assert store.names[Namespace.PRUNE] == set()


def test_with_delete_the_save_goes_too() -> None:
    """retract.1"""
    store, report = root(), FakeReport()
    assert retract_and_delete(retrying(store), report, SAVE, map)
    assert [what for what, _ in report.said] == ["retracted", "retracted", "removed"]
    assert not store.save_exists(SAVE)
    assert store.names[Namespace.PRUNE] == set()


def test_a_save_that_another_publication_needs_stays() -> None:
    """retract.1, prune.2"""
    store, report = root(), FakeReport()
    store.names[Namespace.PUB].add(Entry.of(1, 9, SAVE + b"/inner").name)
    assert retract_and_delete(retrying(store), report, SAVE, map)
    assert [what for what, _ in report.said] == ["retracted", "retracted", "stays"]
    assert store.save_exists(SAVE)
    assert store.names[Namespace.PRUNE] == set()


def test_a_save_behind_a_link_stays() -> None:
    """retract.1, prune.4"""
    store, report = root(), FakeReport()
    store.links.add(b"run/2")
    assert retract_and_delete(retrying(store), report, SAVE, map)
    assert report.all("left") == [(SAVE, SAVE)]
    assert store.names[Namespace.PRUNE] == set()


def test_what_cannot_be_removed_is_reported() -> None:
    """retract.1, prune.5"""
    store, report = root(), FakeReport()
    store.stuck.add(SAVE + b"/weights")
    assert not retract_and_delete(retrying(store), report, SAVE, map)
    assert report.all("failed") == [SAVE]
    assert store.names[Namespace.PRUNE] == {Entry.of(1, 2, SAVE).name, Entry.of(2, 2, SAVE).name}
    entry = Entry.of(2, 2, SAVE)
    store, report = root(), FakeReport()
    store.stuck.add(entry.name)
    assert not retract_and_delete(retrying(store), report, SAVE, map)
    assert entry.name in store.names[Namespace.PUB]
    assert store.save_exists(SAVE)


crashes = st.tuples(st.integers(0, 25), st.sampled_from([Fault.CRASH, Fault.CRASH_AFTER]))


def killed(store: FakeStore, at: int, crash: Fault) -> None:
    """A call that is killed at its effect number `at`, if it has that many."""
    with suppress(Crash):
        retract_and_delete(retrying(FaultyStore(store, [Fault.NONE] * at + [crash])), FakeReport(), SAVE, map)


def is_over(store: FakeStore) -> bool:
    return (
        not store.save_exists(SAVE)
        and published(store) == {b"run/1", b"run/3"}
        and store.names[Namespace.PRUNE] == set()
    )


@given(crashes)
def test_killed_anywhere_the_next_call_finishes_it(crash: tuple[int, Fault]) -> None:
    """retract.1"""
    store = root()
    killed(store, *crash)
    with suppress(ConfigError):  # it was over: nothing is left to take back
        retract_and_delete(retrying(store), FakeReport(), SAVE, map)
    assert is_over(store)


@given(crashes)
def test_killed_anywhere_after_its_first_record_the_next_prune_finishes_it(crash: tuple[int, Fault]) -> None:
    """retract.1, prune.7: also where prune would keep the publications."""
    store = root()
    killed(store, *crash)
    begun = bool(store.names[Namespace.PRUNE]) or SAVE not in published(store)
    assert prune(retrying(store), FakeReport(), Policy(9), map)
    assert is_over(store) if begun else len(published(store)) == 3


def test_a_prune_finishes_a_killed_retraction_of_the_latest_and_then_keeps_the_one_before() -> None:
    """retract.1, prune.1"""
    store, report = root(), FakeReport()
    latest = Entry.of(1, 3, b"run/3")
    store.names[Namespace.PUB] = {latest.name, Entry.of(1, 2, SAVE).name, Entry.of(1, 1, b"run/1").name}
    store.create(Namespace.PRUNE, latest.name, RETRACTED)
    dry = FakeReport()
    prune_dry_run(retrying(store), dry, Policy(1), map)
    assert set(dry.all("would remove")) == {b"run/1", b"run/3"}
    assert prune(retrying(store), report, Policy(1), map)
    assert published(store) == {SAVE}
    assert set(report.all("removed")) == {b"run/1", b"run/3"}
    assert not report.all("removed above")
    assert store.names[Namespace.PRUNE] == set()


def test_a_record_that_a_prune_wrote_does_not_make_the_next_one_remove_the_latest() -> None:
    """prune.1, retract.1"""
    store = root()
    latest = Entry.of(2, 2, SAVE)
    store.create(Namespace.PRUNE, latest.name)
    assert prune(retrying(store), FakeReport(), Policy(1), map)
    assert latest.name in store.names[Namespace.PUB]


@pytest.mark.parametrize("delete", [False, True])
def test_a_warning_says_that_no_publication_is_left(*, delete: bool) -> None:
    """retract.2"""
    store, report = root(), FakeReport()
    for path, left in ((b"run/1", 0), (b"run/3", 0), (SAVE, 1)):
        if delete:
            retract_and_delete(retrying(store), report, path, map)
        else:
            retract(retrying(store), report, path)
        assert len(report.all("nothing left")) == left


def test_an_entry_that_cannot_be_removed_is_an_error() -> None:
    """retract.1"""
    store, report = root(), FakeReport()
    entry = Entry.of(2, 2, SAVE)
    store.stuck.add(entry.name)
    assert not retract(retrying(store), report, SAVE)
    assert report.said == [("failed", b"pub/" + entry.name)]
    assert len(store.names[Namespace.PUB]) == 4
