"""Prune beside other verbs, after a prune that was killed, and where something cannot be removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.entry import Entry
from publish.domain.errors import FormatError, PermanentFault, StoreFault
from publish.domain.ports import Namespace
from publish.domain.prune import Guards, prune, prune_dry_run
from publish.domain.retention import Policy
from tests.support.fakes import FakeReport, FakeStore
from tests.support.faults import Crash, Fault, FaultyStore
from tests.support.pruning import log, run, save


def test_a_publication_made_meanwhile_protects_its_save() -> None:
    """prune.2."""

    class Racing(FakeStore):
        def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
            faults = super().remove_entries(namespace, names)
            if namespace is Namespace.PUB:
                self.names[Namespace.PUB].add(Entry.of(2, 1, b"run/1").name)
            return faults

    store = Racing()
    save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    assert run(store).said == []
    assert b"run/1/weights" in store.files


def test_what_cannot_be_removed_is_reported_and_tried_again_by_the_next_prune() -> None:
    """prune.5, prune.7."""
    store = FakeStore()
    entries = [save(store, 1, step, b"run/%d" % step) for step in range(5)]
    store.stuck = {entries[0].name, b"run/1/weights"}
    for _ in range(2):
        report = run(store)
        assert report.all("failed") == [b"pub/" + entries[0].name, b"run/1"]
        assert log(store) == {entries[0].name, entries[4].name}
        assert b"run/0/weights" in store.files
        assert b"run/1/trainer_state.json" not in store.files
        assert b"run/3/weights" not in store.files
    store.stuck = set()
    assert run(store).said == [("removed", b"run/0"), ("removed", b"run/1")]
    assert store.names[Namespace.PRUNE] == set()


def test_a_removal_that_cannot_be_recorded_is_not_begun() -> None:
    """prune.5, prune.7."""

    class Full(FakeStore):
        def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
            if name == first.name:
                raise PermanentFault("quota")
            super().create(namespace, name, content)

    store = Full()
    first = save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    save(store, 1, 3, b"run/3")
    report = run(store)
    assert report.all("failed") == [b"pub/" + first.name]
    assert report.all("removed") == [b"run/2"]
    assert b"run/1/weights" in store.files


def test_an_unrecognised_removal_record_is_an_error() -> None:
    """layout.9, prune.7: before anything is removed."""
    store = FakeStore()
    save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    store.names[Namespace.PRUNE].add(b"foreign")
    before = set(store.files)
    with pytest.raises(FormatError, match=r"prune/: .*foreign"):
        run(store)
    assert (len(log(store)), set(store.files)) == (2, before)


def test_after_a_stale_listing_the_next_prune_finishes_the_removal() -> None:
    """prune.7: a save that may still be named stays, and so does its record."""
    store = FakeStore()
    entry = save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    # The log, the records and their sync, a record, the removal, and then the log as it was before.
    assert run(FaultyStore(store, [Fault.NONE] * 5 + [Fault.STALE_LIST])).said == []
    assert store.names[Namespace.PRUNE] == {entry.name}
    assert run(store).said == [("removed", b"run/1")]


def test_the_record_of_an_entry_that_stands_stays() -> None:
    """race.2: the prune that wrote it may still remove the entry."""
    store = FakeStore()
    entry = save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    store.names[Namespace.PRUNE].add(entry.name)
    assert run(store, keep=2).said == []
    assert store.names[Namespace.PRUNE] == {entry.name}
    assert len(log(store)) == 2
    assert run(store, keep=1).said == [("removed", b"run/1")]
    assert store.names[Namespace.PRUNE] == set()


def test_a_dry_run_tells_of_removals_that_a_killed_prune_left() -> None:
    """prune.7, prune.10."""
    store = FakeStore()
    entry = save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    store.names[Namespace.PUB].discard(entry.name)
    store.names[Namespace.PRUNE].add(entry.name)
    report = FakeReport()
    prune_dry_run(store, report, Policy(3), map)
    assert ("would remove", b"run/1") in report.said


def test_an_execution_that_begins_during_a_prune_keeps_what_it_resumed_from() -> None:
    """prune.12: read again after the records are written."""
    store = FakeStore()
    entries = [save(store, 1, step, b"run/%d" % step) for step in range(3)]
    resumed: list[Entry | None] = [None, entries[0]]
    report = FakeReport()
    assert prune(store, report, Policy(1), map, Guards(resumed=lambda _log: resumed.pop(0)))
    assert report.said == [("removed", b"run/1")]
    assert log(store) == {entries[0].name, entries[2].name}


def test_a_prune_decides_again_if_the_latest_is_retracted_while_it_verifies() -> None:
    """prune.1, verify.4"""
    store = FakeStore()
    entries = [save(store, 1, step, b"run/%d" % step) for step in range(3)]
    asked: list[bytes] = []

    def is_whole(path: bytes) -> bool:
        asked.append(path)
        store.names[Namespace.PUB].discard(entries[2].name)
        return True

    assert prune(store, FakeReport(), Policy(1), map, Guards(is_whole=is_whole))
    assert asked == [b"run/2", b"run/1"]
    assert log(store) == {entries[1].name}


@given(st.integers(0, 40), st.sampled_from([Fault.CRASH, Fault.CRASH_AFTER]), st.integers(1, 3))
def test_killed_anywhere_and_run_again_it_leaves_what_an_unkilled_prune_leaves(
    at: int, crash: Fault, keep: int
) -> None:
    """prune.6, prune.7."""

    def fresh() -> FakeStore:
        store = FakeStore(page_size=2)
        for step in range(6):
            save(store, 1, step, b"run/%d" % step)
        save(store, 1, 9, b"run/5/inner")
        save(store, 0, 0, b"run")
        return store

    killed, whole = fresh(), fresh()
    try:
        run(FaultyStore(killed, [Fault.NONE] * at + [crash]), keep)
    except Crash:
        for name in log(killed):
            path = Entry.parse(name).path
            assert {path + b"/weights", path + b"/trainer_state.json"} <= set(killed.files)
    run(killed, keep)
    run(whole, keep)
    assert (killed.names, killed.files) == (whole.names, whole.files)


def test_concurrent_prunes_succeed() -> None:
    """prune.8: another prune runs from start to end at each point of this one."""
    for at in range(15):
        store = FakeStore()
        for step in range(4):
            save(store, 1, step, b"run/%d" % step)

        class Interrupted(FaultyStore):
            def _next(self) -> Fault:
                fault = super()._next()
                if self.sends == at:  # noqa: B023  (called within its round)
                    run(store)  # noqa: B023
                return fault

        run(Interrupted(store, []))
        assert len(log(store)) == 1
        assert set(store.files) == {b"run/3/weights", b"run/3/trainer_state.json"}
        assert store.names[Namespace.PRUNE] == set()


def test_a_record_that_cannot_be_dropped_is_reported() -> None:
    """prune.5, prune.7."""

    class Stubborn(FakeStore):
        def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
            return (
                {name: PermanentFault("stuck") for name in names}
                if namespace is Namespace.PRUNE
                else super().remove_entries(namespace, names)
            )

    store = Stubborn()
    first = save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    assert run(store).said == [("removed", b"run/1"), ("failed", b".publish/prune/" + first.name)]
