"""A watch follows no link to the folder of an execution (watch.13)."""

from __future__ import annotations

import pytest

from publish.domain.errors import ConfigError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.ports import Namespace
from publish.domain.root import PosixRoot
from publish.domain.watch import Watcher
from tests.support.fakes import FakeReport, FakeStore

SAVES = b"exec/a"


def watching(store: FakeStore, *, links: bool = False) -> Watcher:
    return Watcher(store, FakeReport(), PosixRoot(b"/ckpt"), FRAMEWORKS["hf"], SAVES, 3, links=links)


@pytest.fixture
def store() -> FakeStore:
    store = FakeStore()
    store.files[SAVES + b"/checkpoint-1/trainer_state.json"] = b'{"global_step": 1}'
    return store


def test_a_link_to_the_saves_ends_a_watch_at_its_start_and_at_each_scan(store: FakeStore) -> None:
    """watch.13"""
    watch = watching(store)
    watch.begin()
    store.links.add(SAVES)
    for act in (watch.begin, watch.scan):
        with pytest.raises(ConfigError, match=r"symbolic link .*: /ckpt/exec/a$"):
            act()
    assert store.names[Namespace.PUB] == set()


def test_a_link_that_the_user_gave_is_followed(store: FakeStore) -> None:
    """watch.13"""
    store.links |= {b"exec", SAVES}
    watch = watching(store, links=True)
    watch.begin()
    assert watch.scan().saves == 1


def test_the_folder_of_all_executions_may_be_a_link_of_a_trusted_owner(store: FakeStore) -> None:
    """watch.13: `exec` on another filesystem"""
    store.links.add(b"exec")
    watch = watching(store)
    watch.begin()
    assert watch.scan().saves == 1
    store.foreign.add(b"exec")
    with pytest.raises(ConfigError, match=r"symbolic link .*: /ckpt/exec$"):
        watch.scan()
