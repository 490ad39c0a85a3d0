"""A prune removes unreferenced saves, reports what it cannot remove, and finishes an interrupted prune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.entry import Entry
from publish.domain.errors import CredentialsRejected, FormatError, PermanentFault, StoreFault
from publish.domain.ports import Namespace, Removal, Store
from publish.domain.prune import Guards, prune, prune_dry_run
from publish.domain.retention import Policy
from tests.support.fakes import FakeReport, FakeStore
from tests.support.faults import Crash, Fault, FaultyStore
from tests.support.retrying import retrying


def save(store: FakeStore, epoch: int, step: int, path: bytes) -> Entry:
    entry = Entry.of(epoch, step, path)
    store.areas[Namespace.PUB].add(entry.name)
    store.files[path + b"/trainer_state.json"] = b"{}"
    store.files[path + b"/weights"] = b"w"
    return entry


def run(store: Store, keep: int = 1) -> FakeReport:
    report = FakeReport()
    clean = prune(retrying(store), report, Policy(keep), map)
    assert clean is not bool(report.all("failed"))
    return report


def log(store: FakeStore) -> set[bytes]:
    return store.areas[Namespace.PUB]


def test_entries_are_removed_and_then_the_saves_that_they_named() -> None:
    """prune.1."""
    store = FakeStore()
    entries = [save(store, 1, step, b"run/%d" % step) for step in range(5)]
    report = run(store, keep=2)
    assert report.said == [("removed", b"run/%d" % step) for step in range(3)]
    assert log(store) == {entry.name for entry in entries[3:]}
    assert {path.split(b"/")[1] for path in store.files} == {b"3", b"4"}
    assert store.areas[Namespace.PRUNE] == set()
    assert run(store, keep=2).said == []


def test_progress_is_reported_before_the_first_removal_and_after_each() -> None:
    """prune.9: nothing is reported if there is nothing to remove."""
    store = FakeStore()
    for step in range(4):
        save(store, 1, step, b"run/%d" % step)
    assert run(store, keep=2).progressed == [(0, 2), (1, 2), (2, 2)]
    assert run(store, keep=2).progressed == []


def test_a_save_that_did_not_exist_is_not_reported_as_removed() -> None:
    """prune.1."""
    store = FakeStore()
    store.areas[Namespace.PUB] = {Entry.of(1, step, b"gone/%d" % step).name for step in range(3)}
    assert run(store).said == [("missing", b"gone/2")]
    assert len(log(store)) == 1
    assert store.areas[Namespace.PRUNE] == set()


def test_a_save_named_twice_is_removed_once() -> None:
    """prune.1."""
    store = FakeStore()
    for epoch in (1, 2):
        save(store, epoch, 5, b"run/5")
    save(store, 3, 1, b"new")
    assert run(store).all("removed") == [b"run/5"]


def test_a_folder_with_only_a_marker_is_reported_as_removed() -> None:
    """prune.1."""
    store = FakeStore()
    store.areas[Namespace.PUB] |= {Entry.of(1, 1, b"run").name, Entry.of(1, 2, b"new").name}
    store.files[b"run/.metadata"] = b"x"
    assert run(store).all("removed") == [b"run"]


def test_a_save_that_remaining_entries_need_stays_and_its_record_is_dropped() -> None:
    """prune.2, prune.7."""
    store = FakeStore()
    save(store, 1, 1, b"a")
    save(store, 1, 2, b"a/b/c")
    save(store, 1, 3, b"x")
    save(store, 1, 4, b"a/b")
    assert run(store).said == [("removed", b"x")]
    assert b"a/weights" in store.files
    assert b"a/b/c/weights" in store.files
    assert store.areas[Namespace.PRUNE] == set()


def test_a_publication_made_meanwhile_protects_its_save() -> None:
    """prune.2."""

    class Racing(FakeStore):
        def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
            faults = super().remove_entries(namespace, names)
            if namespace is Namespace.PUB:
                self.areas[Namespace.PUB].add(Entry.of(2, 1, b"run/1").name)
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
    assert store.areas[Namespace.PRUNE] == set()


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


def test_how_many_saves_are_left_behind_links_is_said_at_the_end() -> None:
    """prune.4: such as all of them where `exec` leads to another disk; also if they are not equally deep."""
    store = FakeStore()
    paths = [b"exec/1", b"exec/a/2", b"exec/a/3", b"exec/4"]
    for step, path in enumerate(paths):
        save(store, 1, step, path)
    store.links = {b"exec"}
    report = run(store)
    assert set(report.all("left")) == {(path, b"exec") for path in paths[:-1]}
    assert report.said[-1] == ("left in all", 3)


def test_a_save_behind_a_link_is_left_and_the_matter_closed() -> None:
    """prune.4."""
    store = FakeStore()
    save(store, 1, 1, b"exec/a/1")
    save(store, 1, 2, b"exec/b/2")
    save(store, 1, 3, b"exec/c/3")
    store.links = {b"exec/a"}
    report = run(store)
    assert report.said == [("left", (b"exec/a/1", b"exec/a")), ("removed", b"exec/b/2")]
    assert not report.all("left in all")
    assert b"exec/a/1/weights" in store.files
    assert store.areas[Namespace.PRUNE] == set()


def test_a_large_save_is_removed_in_several_calls_and_its_marker_in_the_first() -> None:
    """prune.3, prune.6."""
    store = FakeStore(page_size=10)
    save(store, 1, 1, b"run/1")
    for number in range(95):
        store.files[b"run/1/%03d" % number] = b""
    save(store, 1, 2, b"run/1x")
    seen = []
    inner = store.remove_tree

    class Recording(FaultyStore):
        def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
            removal = inner(path, first)
            seen.append(b"run/1/trainer_state.json" in store.files)
            return removal

    assert run(Recording(store, [])).said == [("removed", b"run/1")]
    assert seen == [False] * 10
    assert b"run/1x/weights" in store.files


def test_a_lost_reply_does_not_hide_that_a_save_existed() -> None:
    """s3.8, prune.1: the reply to each call in turn is lost, the one to the removal of the save among them."""
    lost = set()
    for position in range(9):
        store = FakeStore()
        save(store, 1, 1, b"run/1")
        save(store, 1, 2, b"run/2")
        faulty = FaultyStore(store, [Fault.NONE] * position + [Fault.LOST_REPLY])
        assert run(faulty).said == [("removed", b"run/1")]
        lost.add(faulty.sends)
    assert lost == {11}, "some of these faults never happened"


def test_an_unrecognised_removal_record_is_an_error() -> None:
    """layout.9, prune.7: before anything is removed."""
    store = FakeStore()
    save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    store.areas[Namespace.PRUNE].add(b"foreign")
    before = set(store.files)
    with pytest.raises(FormatError, match=r"prune/: .*foreign"):
        run(store)
    assert (len(log(store)), set(store.files)) == (2, before)


def test_rejected_credentials_end_a_prune() -> None:
    """s3.12: only a watch refreshes its credentials."""
    store = FakeStore()
    save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    with pytest.raises(CredentialsRejected):
        run(FaultyStore(store, [Fault.NONE, Fault.NONE, Fault.EXPIRED]))


def test_after_a_stale_listing_the_next_prune_finishes_the_removal() -> None:
    """prune.7: a save that may still be named stays, and so does its record."""
    store = FakeStore()
    entry = save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    # The log, the records and their sync, a record, the removal, and then the log as it was before.
    assert run(FaultyStore(store, [Fault.NONE] * 5 + [Fault.STALE_LIST])).said == []
    assert store.areas[Namespace.PRUNE] == {entry.name}
    assert run(store).said == [("removed", b"run/1")]


def test_the_record_of_an_entry_that_stands_stays() -> None:
    """race.2: the prune that wrote it may still remove the entry."""
    store = FakeStore()
    entry = save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    store.areas[Namespace.PRUNE].add(entry.name)
    assert run(store, keep=2).said == []
    assert store.areas[Namespace.PRUNE] == {entry.name}
    assert len(log(store)) == 2
    assert run(store, keep=1).said == [("removed", b"run/1")]
    assert store.areas[Namespace.PRUNE] == set()


def test_an_entry_whose_save_stays_is_removed_without_a_record() -> None:
    """race.1: the publisher of the other entry must not find one."""
    store = FakeStore()
    created: list[Namespace] = []

    class Watched(FakeStore):
        def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
            created.append(namespace)
            super().create(namespace, name, content)

    store = Watched()
    save(store, 1, 1, b"run/1")
    kept = save(store, 2, 1, b"run/1")
    assert run(store).said == []
    assert created == []
    assert log(store) == {kept.name}


def test_an_alias_that_stays_protects_what_it_leads_to() -> None:
    """alias.1."""

    class Linked(FakeStore):
        def real_path(self, path: bytes) -> bytes | None:
            return b"run/200" if path == b"run/last" else path

    store = Linked()
    save(store, 1, 200, b"run/200")
    store.areas[Namespace.PUB].add(Entry.of(1, 201, b"run/last").name)
    run(store)
    assert b"run/200/weights" in store.files


def test_a_kept_save_that_is_gone_is_warned_of() -> None:
    """verify.4."""
    store = FakeStore()
    save(store, 1, 1, b"run/1")
    store.areas[Namespace.PUB].add(Entry.of(1, 2, b"run/2").name)
    assert run(store, keep=2).said == [("missing", b"run/2")]


def test_a_removed_step_above_every_kept_one_is_warned_of() -> None:
    """prune.13."""
    store = FakeStore()
    high = save(store, 1, 900, b"old/900")
    save(store, 2, 300, b"new/300")
    assert run(store).said == [("removed", b"old/900"), ("removed above", (high, 300))]


def test_a_dry_run_tells_what_would_go_and_why_the_rest_stays_and_changes_nothing() -> None:
    """prune.10."""

    class Linked(FakeStore):
        def real_path(self, path: bytes) -> bytes | None:
            return {b"b/last": b"a/3", b"linked/2": b"elsewhere/2"}.get(path, path)

        def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
            raise AssertionError("a dry run writes nothing")

        def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
            raise AssertionError("a dry run removes nothing")

        def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
            raise AssertionError("a dry run removes nothing")

    store = Linked()
    save(store, 1, 1, b"a/1")
    save(store, 1, 2, b"linked/2")
    save(store, 1, 3, b"a/3")
    save(store, 1, 4, b"c/4")
    save(store, 1, 5, b"d")
    save(store, 1, 6, b"d/in")
    save(store, 1, 7, b"b/last")
    report = FakeReport()
    prune_dry_run(store, report, Policy(2, keep_every=4), map)
    assert report.said == [
        ("kept", (b"c/4", "its step is a multiple of 4")),
        ("kept", (b"d/in", "within -keep 2")),
        ("kept", (b"b/last", "the latest publication", "within -keep 2")),
        ("would remove", b"a/1"),
        ("kept", (b"linked/2", "a symbolic link is on its path")),
        ("kept", (b"a/3", "a publication that stays leads to it through a symbolic link")),
        ("kept", (b"d", "a publication that stays names it, a path in it or a path around it")),
    ]


def test_a_dry_run_tells_of_removals_that_a_killed_prune_left() -> None:
    """prune.7, prune.10."""
    store = FakeStore()
    entry = save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    store.areas[Namespace.PUB].discard(entry.name)
    store.areas[Namespace.PRUNE].add(entry.name)
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
        store.areas[Namespace.PUB].discard(entries[2].name)
        return True

    assert prune(store, FakeReport(), Policy(1), map, Guards(is_whole=is_whole))
    assert asked == [b"run/2", b"run/1"]
    assert log(store) == {entries[1].name}


def test_a_prune_that_verifies_removes_nothing_if_no_save_is_whole() -> None:
    """verify.4."""
    store = FakeStore()
    for step in range(3):
        save(store, 1, step, b"run/%d" % step)
    with pytest.raises(FormatError, match="no published save is whole"):
        prune(store, FakeReport(), Policy(1), map, Guards(is_whole=lambda _: False))
    assert len(log(store)) == 3
    report = FakeReport()
    assert prune(store, report, Policy(1), map, Guards(is_whole=lambda path: path == b"run/1"))
    assert report.all("removed") == [b"run/0"]


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
    assert (killed.areas, killed.files) == (whole.areas, whole.files)


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
        assert store.areas[Namespace.PRUNE] == set()


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


def test_a_dry_run_says_nothing_of_a_save_that_is_gone_already() -> None:
    """prune.10"""
    store = FakeStore()
    for step in (1, 2):
        store.areas[Namespace.PUB].add(Entry.of(1, step, b"run/%d" % step).name)
    store.files[b"run/2/x"] = b""
    report = FakeReport()
    prune_dry_run(store, report, Policy(1), map)
    assert report.all("would remove") == []
