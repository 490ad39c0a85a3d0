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


class LinkedStore(FakeStore):
    """A store in which the saves' folder is behind a link, or is not there."""

    leads_to: bytes | None = SAVES

    def real_path(self, path: bytes) -> bytes | None:
        return self.leads_to if path == SAVES else path


@pytest.mark.parametrize("leads_to", [b"elsewhere", None])
def test_a_link_to_the_saves_ends_a_watch_unless_the_user_gave_it(leads_to: bytes | None) -> None:
    """watch.13: inside the root and outside, at the start and at each scan"""
    store = LinkedStore()
    store.files[SAVES + b"/checkpoint-1/trainer_state.json"] = b'{"global_step": 1}'
    own, given = (
        Watcher(store, FakeReport(), PosixRoot(b"/ckpt"), FRAMEWORKS["hf"], SAVES, 3, links=links)
        for links in (False, True)
    )
    own.begin()
    store.leads_to = leads_to
    for act in (own.begin, own.scan):
        with pytest.raises(ConfigError, match=r"symbolic link .*: /ckpt/exec/a$"):
            act()
    assert store.names[Namespace.PUB] == set()
    given.begin()
    given.scan()
    assert len(store.names[Namespace.PUB]) == 1


def test_saves_that_are_not_there_yet_are_not_behind_a_link() -> None:
    """watch.1, watch.13"""
    store = LinkedStore()
    store.leads_to = None
    watch = Watcher(store, FakeReport(), PosixRoot(b"/ckpt"), FRAMEWORKS["hf"], SAVES, 3, links=False)
    watch.begin()
    assert watch.scan().saves == 0
