"""A save whose sync failed is not published as it is, however the next sync ends (data.3, nfs.6)."""

from __future__ import annotations

import pytest

from publish.domain.errors import NotDurable
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.root import PosixRoot
from publish.domain.watch import Watcher
from tests.support.fakes import FakeReport, FakeStore


class FailingDisk(FakeStore):
    """Says once that a save is not on disk, as Linux does."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: set[bytes] = set()

    def sync_save(self, path: bytes) -> None:
        if path in self.failing:
            self.failing.remove(path)
            raise NotDurable("sync weights: Input/output error")
        super().sync_save(path)


class Run:
    def __init__(self) -> None:
        self.store = FailingDisk()
        self.report = FakeReport()
        self.watch = Watcher(self.store, self.report, PosixRoot(b"/ckpt"), FRAMEWORKS["hf"], b"exec/a", 3)
        self.watch.begin()

    def save(self, step: int) -> bytes:
        path = b"exec/a/checkpoint-%d" % step
        self.store.files[path + b"/trainer_state.json"] = b'{"global_step": %d}' % step
        return path

    def published(self) -> list[int]:
        return [entry.step for entry in self.report.all("published")]  # type: ignore[attr-defined]


@pytest.fixture
def run() -> Run:
    """A watch, and a save of step 2 that the disk lost."""
    run = Run()
    run.store.failing.add(run.save(2))
    return run


def test_a_sync_that_succeeds_after_one_that_failed_proves_nothing(run: Run) -> None:
    """data.3: each scan fails until the save is written anew"""
    for _ in range(3):
        with pytest.raises(NotDurable, match=r"Input/output error; not published until it is saved anew: exec/a/.*-2$"):
            run.watch.scan()
    assert run.published() == []
    assert run.store.synced == []


def test_the_other_saves_are_published(run: Run) -> None:
    """data.3, run.5: lower and higher ones, in the same scan and in later ones"""
    run.save(1)
    run.save(3)
    with pytest.raises(NotDurable):
        run.watch.scan()
    run.save(4)
    with pytest.raises(NotDurable):
        run.watch.scan()
    assert run.published() == [1, 3, 4]


def test_every_lost_save_is_named(run: Run) -> None:
    """data.3"""
    run.store.failing.add(run.save(5))
    with pytest.raises(NotDurable, match=r"checkpoint-2$") as raised:
        run.watch.scan()
    assert [str(fault).rpartition("/")[2] for fault in raised.value.more] == ["checkpoint-5"]


def test_a_save_that_is_written_anew_is_published(run: Run) -> None:
    """data.3"""
    with pytest.raises(NotDurable):
        run.watch.scan()
    run.store.rewritten[b"exec/a/checkpoint-2/trainer_state.json"] = 1
    run.watch.scan()
    assert run.published() == [2]


def test_a_lost_save_that_is_removed_is_forgotten(run: Run) -> None:
    """data.3"""
    with pytest.raises(NotDurable):
        run.watch.scan()
    run.store.files.clear()
    run.watch.scan()
    assert run.published() == []
