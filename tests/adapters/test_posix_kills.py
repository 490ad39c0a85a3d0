"""A prune that is killed anywhere leaves what the next one finishes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore
from publish.domain.entry import Entry
from publish.domain.ports import Namespace
from publish.domain.prune import prune
from publish.domain.retention import Policy
from tests.support.directories import fill, open_store, recorded, tree
from tests.support.fakes import FakeReport
from tests.support.faults import Crash


def test_removed_entries_are_durably_gone_before_their_saves_are_touched(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """prune.1, prune.6, prune.7: the order of effects, with the syncs between them."""
    store = open_store(root)
    for step in (1, 2):
        fill(root, f"run/{step}/a", f"run/{step}/trainer_state.json")
        store.create(Namespace.PUB, Entry.of(1, step, b"run/%d" % step).name)
    first = Entry.of(1, 1, b"run/1").name.decode()
    with recorded(monkeypatch, "fsync", "unlink", "rmdir", "mkdir") as calls:
        assert prune(store, FakeReport(), Policy(1), map)
    effects = [call for call in calls if not call.startswith("open")]
    assert effects == [
        "mkdir .publish",
        "mkdir prune",
        f"fsync {first}",
        "fsync prune",
        "fsync .publish",
        "fsync .",
        f"unlink {first}",
        "fsync pub",
        "unlink trainer_state.json",
        "fsync 1",
        "unlink a",
        "rmdir 1",
        "fsync run",
        f"unlink {first}",
        "fsync prune",
    ]


class TestKills:
    """prune.6, prune.7: killed at any effect, the next prune leaves what an unkilled one leaves."""

    EFFECTS = ("unlink", "rmdir", "mkdir", "fsync", "open")

    def world(self, root: Path) -> PosixStore:
        root.mkdir()
        store = open_store(root)
        for step in range(4):
            fill(root, f"run/{step}/trainer_state.json", f"run/{step}/a", f"run/{step}/deep/b")
            store.create(Namespace.PUB, Entry.of(1, step, b"run/%d" % step).name)
        fill(root, "run/1/inner/.metadata")
        store.create(Namespace.PUB, Entry.of(0, 7, b"run/1/inner").name)
        return store

    def prune(self, store: PosixStore) -> None:
        assert prune(store, FakeReport(), Policy(2), map)

    def kill_at(self, monkeypatch: pytest.MonkeyPatch, effect: int, how: Callable[[], None]) -> list[int]:
        """Ends the process's doings before the given effect; returns a counter of effects."""
        seen = [0]
        for name in self.EFFECTS:
            real = getattr(os, name)

            def call(*arguments: object, real: Callable[..., object] = real, **options: object) -> object:
                if seen[0] == effect:
                    how()
                seen[0] += 1
                return real(*arguments, **options)

            monkeypatch.setattr(os, name, call)
        return seen

    def crash(self) -> None:
        raise Crash

    def test_every_point_of_a_prune_may_be_its_last(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = self.world(root / "whole")
        with monkeypatch.context() as patch:
            effects = self.kill_at(patch, -1, self.crash)
            self.prune(whole)
        assert effects[0] > 40
        for effect in range(effects[0]):
            folder = root / f"killed-{effect}"
            store = self.world(folder)
            with monkeypatch.context() as patch:
                self.kill_at(patch, effect, self.crash)
                with pytest.raises(Crash):
                    self.prune(store)
            self.assert_saves_are_whole(store, folder)
            self.prune(store)
            assert tree(folder) == tree(root / "whole")

    def test_a_process_that_is_really_killed_leaves_the_same(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A spot check with SIGKILL, which runs no handler at all."""
        self.prune(self.world(root / "whole"))
        for effect in range(3, 60, 11):
            folder = root / f"killed-{effect}"
            store = self.world(folder)
            child = os.fork()
            if child == 0:
                self.kill_at(monkeypatch, effect, lambda: os.kill(os.getpid(), signal.SIGKILL))
                self.prune(store)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            self.assert_saves_are_whole(store, folder)
            self.prune(store)
            assert tree(folder) == tree(root / "whole")

    def assert_saves_are_whole(self, store: PosixStore, folder: Path) -> None:
        for name in store.list_entries(Namespace.PUB, None).names:
            save = folder / os.fsdecode(Entry.parse(name).path)
            assert (save / ".metadata").exists() or {"trainer_state.json", "a", "deep"} <= set(os.listdir(save))
