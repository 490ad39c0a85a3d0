"""A watch publishes each complete save once, in step order."""

from __future__ import annotations

import json
import re

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import ConfigError, FormatError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.ports import Namespace
from publish.domain.root import PosixRoot
from publish.domain.watch import Watcher
from tests.support.fakes import FakeReport, FakeStore
from tests.support.faults import Fault, FaultyStore
from tests.support.retrying import retrying

SAVES = b"exec/a"


class Run:
    """A store with an execution's saves and a watch beside it."""

    def __init__(self, framework: str = "hf", saves: bytes = SAVES, epoch: int = 3) -> None:
        self.store = FakeStore()
        self.counted = FaultyStore(self.store, [])
        self.report = FakeReport()
        self.saves = saves
        self.watch = Watcher(self.counted, self.report, PosixRoot(b"/ckpt"), FRAMEWORKS[framework], saves, epoch)

    def save(self, step: int, state: bytes | None = None) -> bytes:
        path = (self.saves + b"/" if self.saves else b"") + f"checkpoint-{step}".encode()
        self.store.files[path + b"/model.safetensors"] = b"w"
        self.store.files[path + b"/trainer_state.json"] = state or json.dumps({"global_step": step}).encode()
        return path

    def published(self) -> list[int]:
        return [entry.step for entry in self.report.all("published") if isinstance(entry, Entry)]


def test_complete_saves_are_published_in_step_order_and_each_once() -> None:
    """watch.1."""
    run = Run()
    for step in (100, 20, 3):
        run.save(step)
    run.save(50, b'{"global_step"')
    run.watch.begin()
    run.watch.scan()
    assert run.published() == [3, 20, 100]
    run.save(50)
    run.watch.scan()
    run.watch.scan()
    assert run.published() == [3, 20, 100, 50]
    expected = {Entry.of(3, step, b"exec/a/checkpoint-%d" % step).name for step in (3, 20, 50, 100)}
    assert run.store.names[Namespace.PUB] == expected


@pytest.mark.parametrize(("newest", "is_said"), [(2, False), (3, False), (4, True)])
def test_a_watch_says_that_a_newer_execution_has_published(newest: int, *, is_said: bool) -> None:
    """watch.8."""
    run = Run(epoch=3)
    run.store.names[Namespace.PUB] |= {Entry.of(epoch, 1, b"exec/x").name for epoch in (1, newest)}
    run.watch.begin()
    said = [note for note in run.report.notes if "a newer execution has published" in note]
    assert len(said) == is_said
    assert all(note.endswith(f": epoch 3, the log has {newest}") for note in said)


def test_a_folder_of_saves_that_does_not_exist_yet_is_not_an_error() -> None:
    """watch.1."""
    run = Run()
    run.watch.begin()
    run.watch.scan()
    assert run.report.said == []


def test_the_root_itself_can_be_the_folder_of_saves() -> None:
    """watch.1."""
    run = Run(saves=b"")
    run.save(7)
    run.store.names[Namespace.PUB].add(Entry.of(1, 1, b"x").name)
    run.watch.begin()
    run.watch.scan()
    assert Entry.of(3, 7, b"checkpoint-7").name in run.store.names[Namespace.PUB]


def test_lower_steps_are_published_before_a_broken_higher_one_is_an_error() -> None:
    """watch.1, watch.4: the message names the file."""
    run = Run()
    run.save(1)
    run.save(2, b"{]")
    run.save(3)
    run.watch.begin()
    with pytest.raises(FormatError, match=r"^/ckpt/exec/a/checkpoint-2/trainer_state.json: not JSON at character 1"):
        run.watch.scan()
    assert run.published() == [1]


def test_a_published_save_is_not_read_again() -> None:
    """watch.7."""
    run = Run()
    run.watch.begin()
    run.save(1)
    run.watch.scan()
    run.save(2)
    before = run.counted.sends
    run.watch.scan()
    new = run.counted.sends - before
    for step in range(3, 30):
        run.save(step)
        before = run.counted.sends
        run.watch.scan()
        assert run.counted.sends - before == new


def test_a_save_in_the_log_is_neither_read_nor_published_again() -> None:
    """watch.1, watch.7: a restarted watch does not report earlier publications."""
    run = Run()
    path = run.save(1, b"broken meanwhile")
    run.store.names[Namespace.PUB].add(Entry.of(3, 1, path).name)
    run.watch.begin()
    run.watch.scan()
    assert run.report.said == []


def test_an_entry_created_by_another_watch_is_reported_once() -> None:
    """s3.9, watch.1."""
    run = Run()
    run.watch.begin()
    path = run.save(1)
    run.store.names[Namespace.PUB].add(Entry.of(3, 1, path).name)
    run.watch.scan()
    run.watch.scan()
    assert [said for said, _ in run.report.said] == ["already"]


def test_an_unrecognised_entry_at_the_start_is_an_error() -> None:
    """layout.4: the error names every one of them."""
    run = Run()
    run.store.names[Namespace.PUB] |= {b"foreign", b"README", Entry.of(1, 1, b"x").name}
    with pytest.raises(
        FormatError, match=re.escape("pub/: unrecognised entry (move it out of the folder): README")
    ) as caught:
        run.watch.begin()
    assert [str(fault) for fault in caught.value.more] == [
        "pub/: unrecognised entry (move it out of the folder): foreign"
    ]


def test_an_unrecognised_entry_that_appears_later_is_ignored() -> None:
    """layout.4: watch reads the log once."""
    run = Run()
    run.watch.begin()
    run.store.names[Namespace.PUB].add(b"foreign")
    run.save(1)
    run.watch.scan()
    assert run.published() == [1]


def test_a_save_with_too_long_a_path_is_refused_before_anything_is_written() -> None:
    """layout.8."""
    run = Run(saves=b"d" * 120)
    run.save(100)
    run.watch.begin()
    with pytest.raises(ConfigError, match="over 255 bytes"):
        run.watch.scan()
    assert run.store.names[Namespace.PUB] == set()


@pytest.mark.parametrize("saves", [b"d" * 121, b"exec/a\nb"])
def test_a_folder_whose_saves_cannot_be_published_is_refused_at_the_start(saves: bytes) -> None:
    """layout.8: not at the first complete save, hours later."""
    with pytest.raises(ConfigError):
        Run(saves=saves).watch.begin()


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.CONFLICT])
def test_a_transient_fault_neither_loses_a_save_nor_reports_it_twice(fault: Fault) -> None:
    """s3.8, s3.9, s3.10."""
    run = Run()
    run.save(1)
    store = retrying(FaultyStore(run.store, [fault, Fault.NONE] * 40))
    watch = Watcher(store, run.report, PosixRoot(b"/ckpt"), FRAMEWORKS["hf"], SAVES, 3)
    watch.begin()
    watch.scan()
    watch.scan()
    assert len(run.report.said) == 1
    assert run.store.names[Namespace.PUB] == {Entry.of(3, 1, b"exec/a/checkpoint-1").name}


def test_two_folders_of_one_step_are_both_published() -> None:
    """layout.6."""
    run = Run("dcp")
    for name in (b"step-5", b"step_5"):
        run.store.files[SAVES + b"/" + name + b"/.metadata"] = b"x"
    run.watch.begin()
    run.watch.scan()
    assert run.published() == [5, 5]


def test_a_save_that_is_not_whole_is_still_being_written() -> None:
    """verify.3"""
    run = Run()
    paths = [run.save(step) for step in (1, 2, 3)]
    flaws = {paths[1]: "model.safetensors: cut off"}
    asked: list[bytes] = []

    def find_flaw(path: bytes) -> str:
        asked.append(path)
        return flaws.get(path, "")

    run.save(4, b"{")
    watch = Watcher(run.store, run.report, PosixRoot(b"/ckpt"), FRAMEWORKS["hf"], SAVES, 3, find_flaw)
    watch.begin()
    watch.scan()
    assert run.published() == [1, 3]
    flaws.clear()
    watch.scan()
    assert run.published() == [1, 3, 2]
    # A save is looked at again after its data was synced (data.1). One that the framework calls incomplete, or that is
    # published, is not looked at.
    assert asked == [paths[0], paths[0], paths[1], paths[2], paths[2], paths[1], paths[1]]


def test_a_save_of_another_user_is_skipped_and_named_once() -> None:
    """watch.13"""
    run = Run()
    foreign, own = run.save(1), run.save(2)
    run.store.foreign.add(foreign + b"/trainer_state.json")
    run.watch.begin()
    run.watch.scan()
    run.watch.scan()
    assert run.published() == [2]
    notes = [note for note in run.report.notes if "another user" in note]
    assert notes == [f"skipping a save that belongs to another user: /ckpt/{foreign.decode()}/trainer_state.json"]
    assert own != foreign


def test_a_save_that_is_being_removed_is_named_once_and_looked_at_again() -> None:
    """race.1"""
    run = Run()
    path = run.save(1)
    record = Entry.of(9, 1, path).name
    run.store.names[Namespace.PRUNE].add(record)
    run.watch.begin()
    run.watch.scan()
    run.watch.scan()
    assert len(run.report.all("not published")) == 1
    run.store.names[Namespace.PRUNE].clear()
    run.watch.scan()
    assert run.published() == [1]
