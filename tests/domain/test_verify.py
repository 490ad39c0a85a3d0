from __future__ import annotations

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import ConfigError, NotApplied
from publish.domain.ports import Namespace
from publish.domain.verify import RepeatedChecker, SaveChecker, latest_whole, published_saves
from publish.domain.wholeness import Verdict
from tests.support.fakes import FakeStore
from tests.support.samples import sample

ZIP = sample("torch/zip.pt")


class Reads(FakeStore):
    """Counts the files that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[bytes] = []

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        self.reads.append(path)
        return super().read_range(path, start, length)


class Log:
    """A log with saves, and what was said about them."""

    def __init__(self) -> None:
        self.store = Reads()
        self.said: list[tuple[bytes, bool]] = []
        self.checker = SaveChecker(self.store, map, self._say)

    def _say(self, path: bytes, verdict: Verdict) -> None:
        self.said.append((path, verdict.is_whole))

    def publish(self, epoch: int, step: int, path: bytes, content: bytes | None = ZIP) -> Entry:
        entry = Entry.of(epoch, step, path)
        self.store.create(Namespace.PUB, entry.name)
        if content is not None:
            self.store.files[path + b"/optimizer.pt"] = content
        return entry


@pytest.fixture
def log() -> Log:
    return Log()


def test_the_newest_whole_publication_is_found_and_the_newer_ones_are_named(log: Log) -> None:
    """verify.2"""
    log.publish(1, 1, b"a/1")
    whole = log.publish(1, 2, b"a/2")
    log.publish(1, 3, b"a/3", ZIP[:-1])
    log.publish(2, 1, b"b/1", None)
    assert latest_whole(log.store, log.checker) == whole
    assert log.said == [(b"b/1", False), (b"a/3", False), (b"a/2", True)]


def test_a_save_that_was_published_twice_is_judged_once(log: Log) -> None:
    """verify.1"""
    log.publish(1, 5, b"a/5", b"")
    log.publish(2, 5, b"a/5", b"")
    older = log.publish(1, 4, b"a/4")
    assert latest_whole(log.store, log.checker) == older
    assert log.said == [(b"a/5", False), (b"a/4", True)]


def test_nothing_published_is_nothing_to_resume_from(log: Log) -> None:
    """verify.2"""
    assert latest_whole(log.store, log.checker) is None


def test_publications_of_which_none_is_whole_are_an_error(log: Log) -> None:
    """verify.2"""
    log.publish(1, 1, b"a/1", b"")
    log.publish(1, 2, b"a/2", None)
    with pytest.raises(
        ConfigError, match=r"^no save to resume from is whole \(each is named above with its fault\): 2 looked at$"
    ):
        latest_whole(log.store, log.checker)


def test_an_error_of_the_store_is_not_a_reason_to_fall_back(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """verify.2"""
    log.publish(1, 1, b"a/1")
    log.publish(1, 2, b"a/2")

    def fail(path: bytes, start: int, length: int) -> bytes:
        raise NotApplied("no answer")

    monkeypatch.setattr(log.store, "read_range", fail)
    with pytest.raises(NotApplied):
        latest_whole(log.store, log.checker)
    assert log.said == []


def test_the_saves_of_all_publications_are_in_the_log_s_order_each_once(log: Log) -> None:
    """verify.1"""
    for epoch, step, path in ((1, 1, b"a"), (1, 2, b"b"), (2, 1, b"c"), (3, 1, b"a")):
        log.publish(epoch, step, path)
    assert published_saves(log.store) == [b"b", b"c", b"a"]


def test_a_save_that_does_not_change_is_not_read_again() -> None:
    """verify.3"""
    store = Reads()
    checker = RepeatedChecker(store, map)
    store.files[b"s/optimizer.pt"] = ZIP[:-1]
    assert not checker.check(b"s").is_whole
    assert not checker.check(b"s").is_whole
    assert len(store.reads) == 1
    store.files[b"s/optimizer.pt"] = ZIP
    assert checker.check(b"s").is_whole
    assert len(store.reads) == 2


def test_a_save_that_was_whole_is_read_again() -> None:
    """verify.3: whether it is still whole is asked once more after its data was synced (data.1)."""
    store = Reads()
    checker = RepeatedChecker(store, map)
    store.files[b"s/optimizer.pt"] = ZIP
    assert checker.check(b"s").is_whole
    assert checker.check(b"s").is_whole
    assert len(store.reads) == 2
