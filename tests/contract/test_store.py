"""The Store port's contract on entries and records, which every store keeps (publish/domain/ports.py)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists, ConfigError, Conflict, FormatError, OutcomeUnknown
from publish.domain.listing import pages
from publish.domain.ports import Namespace, Store
from publish.domain.prune import prune
from publish.domain.publish import publish_save
from publish.domain.resolve import latest
from publish.domain.retention import Policy
from tests.support.fakes import FakeReport
from tests.support.retrying import retrying
from tests.support.stores import FreshRoot

NAME = Entry.of(1, 2, b"run/checkpoint-2").name


def names(store: Store, namespace: Namespace = Namespace.PUB) -> list[bytes]:
    return sorted(pages(lambda token: store.list_entries(namespace, token)))


@pytest.mark.parametrize("namespace", Namespace)
def test_an_empty_root_has_no_entries(store: Store, namespace: Namespace) -> None:
    """layout.5."""
    assert names(store, namespace) == []
    assert store.remove_entries(namespace, [NAME]) == {}


@pytest.mark.parametrize("namespace", Namespace)
def test_a_taken_name_is_refused_and_the_first_is_kept(
    fresh_root: FreshRoot, store: Store, namespace: Namespace
) -> None:
    """layout.7."""
    store.create(namespace, NAME)
    for again in (store, fresh_root.store()):
        with pytest.raises(AlreadyExists):
            again.create(namespace, NAME)
    assert names(store, namespace) == [NAME]
    assert fresh_root.paths() == [f"{namespace.value.decode()}/{NAME.decode()}"]


def test_of_racing_creators_one_wins(fresh_root: FreshRoot) -> None:
    """layout.7: several clients, several rounds."""
    stores = [fresh_root.store() for _ in range(8)]
    for step in range(5):
        name = Entry.of(1, step, b"a").name

        def create(store: Store, name: bytes = name) -> int:
            while True:
                try:
                    store.create(Namespace.PUB, name)
                except AlreadyExists:
                    return 0
                except (Conflict, OutcomeUnknown):
                    continue
                return 1

        with ThreadPoolExecutor(len(stores)) as pool:
            assert sum(pool.map(create, stores)) == 1
    assert len(names(stores[0])) == 5


def test_a_listing_of_more_than_a_page_is_complete(fresh_root: FreshRoot, store: Store) -> None:
    """layout.6, resolve.1."""
    entries = [Entry.of(1, step, b"run/%d" % step) for step in range(1205)]
    fresh_root.fill(*(f"pub/{entry.name.decode()}" for entry in entries), body=b"")
    assert names(store) == [entry.name for entry in entries]
    assert latest(store) == entries[-1]


def test_unrecognised_names_are_listed_too(fresh_root: FreshRoot, store: Store) -> None:
    """layout.4."""
    fresh_root.fill("pub/README", "pub/.hidden", f"pub/{NAME.decode()}")
    assert names(store) == sorted([b".hidden", NAME, b"README"])
    with pytest.raises(FormatError, match=r"(README|hidden)"):
        latest(store)


def test_removing_entries_is_idempotent(store: Store) -> None:
    """prune.1."""
    others = [Entry.of(2, step, b"a").name for step in range(3)]
    for name in (NAME, *others):
        store.create(Namespace.PUB, name)
    for _ in range(2):
        assert store.remove_entries(Namespace.PUB, [NAME, others[0]]) == {}
        assert names(store) == others[1:]


def test_the_longest_name_can_be_created_and_a_longer_one_is_refused(store: Store) -> None:
    """layout.8: on POSIX the limit is 133 bytes of path; every store takes as much."""
    longest = Entry.of(1, 1, b"p" * 133).name
    store.check_name_length(longest)
    store.create(Namespace.PUB, longest)
    assert names(store) == [longest]
    with pytest.raises(ConfigError, match=r"[0-9]"):
        store.check_name_length(Entry.of(1, 1, b"p" * 700).name)


def test_a_reader_beside_a_writer_sees_every_earlier_entry(fresh_root: FreshRoot) -> None:
    """layout.7, resolve.1: it may see later entries, too."""
    reader, writer = fresh_root.store(), fresh_root.store()
    first = Entry.of(1, 0, b"a")
    writer.create(Namespace.PUB, first.name)

    def write() -> None:
        for step in range(1, 40):
            writer.create(Namespace.PUB, Entry.of(1, step, b"a").name)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        seen = [latest(reader)]
        while not writing.done():
            seen.append(latest(reader))
        writing.result()
    steps = [entry.step if entry else -1 for entry in seen]
    assert steps == sorted(steps)
    assert steps[0] >= 0
    assert len(names(reader)) == 40


def test_a_run_is_published_resolved_and_pruned(fresh_root: FreshRoot) -> None:
    """resolve.1, publish.4, prune.1 to prune.3."""
    store, report = retrying(fresh_root.store()), FakeReport()
    entries = [Entry.of(1, step, f"exec/a/checkpoint-{step}".encode()) for step in (1, 2, 10)]
    for entry in entries:
        fresh_root.fill(f"{entry.path.decode()}/trainer_state.json", f"{entry.path.decode()}/model/weights")
        publish_save(store, report, entry)
    assert latest(store) == entries[-1]
    assert prune(store, report, Policy(1), map)
    assert report.said[3:] == [("removed", b"exec/a/checkpoint-1"), ("removed", b"exec/a/checkpoint-2")]
    assert fresh_root.paths() == [
        "exec/a/checkpoint-10/model/weights",
        "exec/a/checkpoint-10/trainer_state.json",
        f"pub/{entries[-1].name.decode()}",
    ]
    assert latest(store) == entries[-1]


@pytest.mark.parametrize("namespace", Namespace)
def test_a_record_holds_what_its_creator_wrote(store: Store, namespace: Namespace) -> None:
    """begin.4."""
    assert store.read_record(namespace, b"a") is None
    store.create(namespace, b"a", b"7 -\n")
    with pytest.raises(AlreadyExists):
        store.create(namespace, b"a", b"8 -\n")
    store.create(namespace, b"empty")
    assert store.read_record(namespace, b"a") == b"7 -\n"
    assert store.read_record(namespace, b"empty") == b""
    assert store.read_record(namespace, b"other") is None
    assert names(store, namespace) == [b"a", b"empty"]


def test_of_racing_creators_all_read_the_content_of_the_one_that_wins(fresh_root: FreshRoot) -> None:
    """begin.4."""
    stores = [fresh_root.store() for _ in range(8)]

    def create(number: int) -> bytes | None:
        while True:
            try:
                stores[number].create(Namespace.PRUNE, b"a", b"%d" % number)
            except AlreadyExists:
                return stores[number].read_record(Namespace.PRUNE, b"a")
            except (Conflict, OutcomeUnknown):
                continue
            return b"%d" % number

    with ThreadPoolExecutor(len(stores)) as pool:
        assert len(set(pool.map(create, range(8)))) == 1


def test_a_save_and_its_entries_are_synced_whether_they_are_there_or_not(fresh_root: FreshRoot, store: Store) -> None:
    """data.1, data.3, data.5."""
    fresh_root.fill("run/1/a", "run/1/deep/b", "run/1.ckpt")
    store.create(Namespace.PUB, NAME)
    for path in (b"run/1", b"run/1.ckpt", b"run/2"):
        store.sync_save(path)
    store.sync_entries(Namespace.PUB, [NAME, b"other"])
    store.sync_entries(Namespace.PRUNE, [NAME])
    assert names(store) == [NAME]
