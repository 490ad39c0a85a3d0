"""A save is published once, if it exists and its path allows it."""

from __future__ import annotations

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import ConfigError, PermanentFault
from publish.domain.ports import Namespace
from publish.domain.publish import publish_save
from tests.support.fakes import FakeReport, FakeStore


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
    assert store.names[Namespace.PUB] == {entry.name}


def test_a_save_that_does_not_exist_is_not_published() -> None:
    """publish.2."""
    store = FakeStore()
    with pytest.raises(ConfigError, match="save not found below the root: run/5"):
        publish(store, Entry.of(1, 5, b"run/5"))
    assert store.names[Namespace.PUB] == set()


@pytest.mark.parametrize("path", [b"a\nb", b"d" * 134, b"exec"])
def test_a_path_that_must_not_be_published_is_refused_before_anything_is_written(path: bytes) -> None:
    """layout.8, publish.1: `exec` holds the saves of every execution"""
    store = FakeStore()
    store.files[path] = b""
    with pytest.raises(ConfigError):
        publish(store, Entry.of(1, 5, path))
    assert store.names[Namespace.PUB] == set()


def test_a_save_is_synced_before_it_is_published_unless_that_is_turned_off() -> None:
    """data.1"""
    for sync in (True, False):
        store = FakeStore()
        store.files[b"run/1/x"] = b""
        publish_save(store, FakeReport(), Entry.of(1, 1, b"run/1"), sync=sync)
        assert store.synced == ([b"run/1"] if sync else [])
        assert len(store.names[Namespace.PUB]) == 1


def test_an_entry_that_cannot_be_taken_back_is_an_error() -> None:
    """race.1"""
    store = FakeStore()
    store.files[b"run/1/x"] = b""
    store.names[Namespace.PRUNE].add(Entry.of(1, 1, b"run/1").name)
    entry = Entry.of(2, 1, b"run/1")
    store.stuck.add(entry.name)
    with pytest.raises(PermanentFault):
        publish_save(store, FakeReport(), entry)
