"""A prune removes unreferenced saves, reports what it cannot remove, and finishes an interrupted prune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import CredentialsRejected, FormatError, StoreFault
from publish.domain.ports import Namespace, Removal
from publish.domain.prune import Guards, prune, prune_dry_run
from publish.domain.retention import Policy
from tests.support.fakes import FakeReport, FakeStore
from tests.support.faults import Fault, FaultyStore
from tests.support.pruning import log, run, save


def test_entries_are_removed_and_then_the_saves_that_they_named() -> None:
    """prune.1."""
    store = FakeStore()
    entries = [save(store, 1, step, b"run/%d" % step) for step in range(5)]
    report = run(store, keep=2)
    assert report.said == [("removed", b"run/%d" % step) for step in range(3)]
    assert log(store) == {entry.name for entry in entries[3:]}
    assert {path.split(b"/")[1] for path in store.files} == {b"3", b"4"}
    assert store.names[Namespace.PRUNE] == set()
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
    store.names[Namespace.PUB] = {Entry.of(1, step, b"gone/%d" % step).name for step in range(3)}
    assert run(store).said == [("missing", b"gone/2")]
    assert len(log(store)) == 1
    assert store.names[Namespace.PRUNE] == set()


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
    store.names[Namespace.PUB] |= {Entry.of(1, 1, b"run").name, Entry.of(1, 2, b"new").name}
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
    assert store.names[Namespace.PRUNE] == set()


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
    assert store.names[Namespace.PRUNE] == set()


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


def test_rejected_credentials_end_a_prune() -> None:
    """s3.12: only a watch refreshes its credentials."""
    store = FakeStore()
    save(store, 1, 1, b"run/1")
    save(store, 1, 2, b"run/2")
    with pytest.raises(CredentialsRejected):
        run(FaultyStore(store, [Fault.NONE, Fault.NONE, Fault.EXPIRED]))


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
    store.names[Namespace.PUB].add(Entry.of(1, 201, b"run/last").name)
    run(store)
    assert b"run/200/weights" in store.files


def test_a_kept_save_that_is_gone_is_warned_of() -> None:
    """verify.4."""
    store = FakeStore()
    save(store, 1, 1, b"run/1")
    store.names[Namespace.PUB].add(Entry.of(1, 2, b"run/2").name)
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


def test_a_dry_run_says_nothing_of_a_save_that_is_gone_already() -> None:
    """prune.10"""
    store = FakeStore()
    for step in (1, 2):
        store.names[Namespace.PUB].add(Entry.of(1, step, b"run/%d" % step).name)
    store.files[b"run/2/x"] = b""
    report = FakeReport()
    prune_dry_run(store, report, Policy(1), map)
    assert report.all("would remove") == []
