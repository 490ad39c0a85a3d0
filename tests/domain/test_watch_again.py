"""Saves that a watch must not take for new: those of earlier executions, its own, and those that still change."""

from __future__ import annotations

import json

import pytest

from publish.domain.entry import Entry
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.layout import Check, Framework, Layout, Need
from publish.domain.ports import Namespace
from publish.domain.root import PosixRoot, Root, S3Root
from publish.domain.watch import Watcher
from tests.support.fakes import FakeReport, FakeStore
from tests.support.layouts import torch_zip

SAVES = b"exec/shared"
SETTLES = Framework(
    "settles",
    (Layout(("s-N",), rb"s-([0-9]+)", (Need(b"mark", Check.ANY),), settle=True),),
    "a framework whose mark is not its last file",
)


class Run:
    """An execution that saves in a folder which others have used, and a watch beside it."""

    def __init__(
        self,
        store: FakeStore | None = None,
        epoch: int = 2,
        framework: Framework = FRAMEWORKS["hf"],
        root: Root = PosixRoot(b"/ckpt"),  # noqa: B008  (never changed)
    ) -> None:
        self.store = store or FakeStore()
        self.epoch = epoch
        self.report = FakeReport()
        self.watcher = Watcher(self.store, self.report, root, framework, SAVES, epoch)

    def write(self, step: int) -> None:
        """A whole save, whose files get new versions."""
        for name, content in (("model.safetensors", b"w"), ("trainer_state.json", _state(step))):
            self.put(f"checkpoint-{step}/{name}", content)

    def put(self, name: str, content: bytes) -> None:
        path = SAVES + b"/" + name.encode()
        self.store.rewritten[path] = self.store.rewritten.get(path, 0) + 1
        self.store.files[path] = content

    def remove(self, save: str) -> None:
        inside = SAVES + b"/" + save.encode()
        self.store.files = {path: data for path, data in self.store.files.items() if not path.startswith(inside)}

    def published(self) -> list[tuple[int, int]]:
        return [(entry.epoch, entry.step) for _, entry in self.report.said if isinstance(entry, Entry)]


def _state(step: int) -> bytes:
    return json.dumps({"global_step": step}).encode()


def first_execution(*steps: int) -> FakeStore:
    """An execution of epoch 1 has saved and published these."""
    run = Run(epoch=1)
    run.watcher.begin()
    for step in steps:
        run.write(step)
    run.watcher.scan()
    assert run.published() == [(1, step) for step in steps]
    return run.store


def test_after_a_rollback_in_a_shared_folder_only_what_is_written_anew_is_published() -> None:
    """watch.9: the reported case. Execution 2 goes back to step 100 and trains on in the folder of execution 1."""
    run = Run(first_execution(100, 200, 300))
    run.watcher.begin()
    run.watcher.scan()
    assert run.published() == []
    run.write(200)
    run.watcher.scan()
    assert run.published() == [(2, 200)]
    run.write(400)
    run.watcher.scan()
    assert run.published() == [(2, 200), (2, 400)]
    latest = max(run.store.names[Namespace.PUB])
    assert (Entry.parse(latest).epoch, Entry.parse(latest).step) == (2, 400)


@pytest.mark.parametrize(("steps", "how_many"), [((200,), "1 save"), ((100, 200), "2 saves")])
def test_what_is_passed_over_is_said_once(steps: tuple[int, ...], how_many: str) -> None:
    """watch.9."""
    run = Run(first_execution(*steps))
    run.watcher.begin()
    run.watcher.scan()
    run.watcher.scan()
    assert run.report.notes == [
        (
            f"skipping {how_many} of earlier executions until written anew, "
            "the newest is /ckpt/exec/shared/checkpoint-200 (epoch 1)"
        )
    ]


def test_a_save_that_is_being_overwritten_is_passed_over_until_its_marker_is_new() -> None:
    """watch.9: the old marker is there, and whole, until the end."""
    run = Run(first_execution(100))
    run.watcher.begin()
    run.put("checkpoint-100/model.safetensors", b"new")
    run.watcher.scan()
    assert run.published() == []
    run.put("checkpoint-100/trainer_state.json", _state(100)[:-1])
    run.watcher.scan()
    assert run.published() == []
    run.put("checkpoint-100/trainer_state.json", _state(100))
    run.watcher.scan()
    assert run.published() == [(2, 100)]


def test_a_save_with_several_markers_is_new_when_all_of_them_are() -> None:
    """watch.9: Megatron's metadata.json follows .metadata, and both are there from before."""
    lightning = FRAMEWORKS["dcp"]
    store = FakeStore()
    run = Run(store, framework=lightning)
    save = "step=7.ckpt"
    run.put(f"{save}/.metadata", b"x")
    run.put(f"{save}/meta.pt", torch_zip(b""))
    store.names[Namespace.PUB].add(Entry.of(1, 7, SAVES + b"/" + save.encode()).name)
    run.watcher.begin()
    run.put(f"{save}/.metadata", b"x")
    run.watcher.scan()
    assert run.published() == []
    run.put(f"{save}/meta.pt", torch_zip(b""))
    run.watcher.scan()
    assert run.published() == [(2, 7)]


def test_a_save_that_its_earlier_execution_lost_is_published_as_soon_as_it_is_there() -> None:
    """watch.9: written between two scans, it is new all the same."""
    store = first_execution(100)
    run = Run(store)
    run.remove("checkpoint-100")
    run.watcher.begin()
    run.write(100)
    run.watcher.scan()
    assert run.published() == [(2, 100)]


def test_a_save_of_a_later_execution_is_not_passed_over() -> None:
    """watch.9: only a lower epoch is an earlier execution's."""
    store = first_execution(100)
    run = Run(store, epoch=0)
    run.watcher.begin()
    run.watcher.scan()
    assert run.published() == [(0, 100)]


def test_a_watch_that_comes_back_does_not_look_at_its_own_saves() -> None:
    """watch.7, watch.9: the execution's own entry counts, not the earlier one's."""
    run = Run(first_execution(100))
    run.watcher.begin()
    run.write(100)
    run.watcher.scan()
    again = Run(run.store)
    again.watcher.begin()
    again.watcher.scan()
    assert again.report.said == []
    assert again.report.notes == []


def test_a_save_that_vanished_and_came_back_is_looked_at_again() -> None:
    """watch.12: the reported case. It was retracted with -delete and then written anew."""
    run = Run()
    run.watcher.begin()
    run.write(100)
    run.watcher.scan()
    run.store.names[Namespace.PUB].clear()
    run.write(100)
    run.watcher.scan()
    assert run.published() == [(2, 100)]
    run.remove("checkpoint-100")
    run.watcher.scan()
    run.put("checkpoint-100/trainer_state.json", _state(100)[:-1])
    run.watcher.scan()
    assert run.published() == [(2, 100)]
    run.write(100)
    run.watcher.scan()
    assert run.published() == [(2, 100), (2, 100)]
    assert len(run.store.names[Namespace.PUB]) == 1


def test_a_save_settles_when_two_scans_see_the_same() -> None:
    """watch.2: names, sizes and versions."""
    run = Run(framework=SETTLES)
    run.watcher.begin()
    run.put("s-7/mark", b"")
    run.put("s-7/weights", b"ww")
    assert run.watcher.scan().incomplete[0].reason == "has changed since the scan before"
    assert run.watcher.is_settling
    run.put("s-7/weights", b"ww")
    assert run.watcher.scan().incomplete
    run.put("s-7/more", b"")
    assert run.watcher.scan().incomplete
    assert not run.watcher.scan().incomplete
    assert run.published() == [(2, 7)]
    assert not run.watcher.is_settling


def test_a_save_that_loses_its_mark_settles_anew() -> None:
    """watch.2."""
    run = Run(framework=SETTLES)
    run.watcher.begin()
    run.put("s-7/mark", b"")
    run.watcher.scan()
    mark = run.store.files.pop(SAVES + b"/s-7/mark")
    run.put("s-7/weights", b"w")
    run.watcher.scan()
    del run.store.files[SAVES + b"/s-7/weights"]
    run.store.files[SAVES + b"/s-7/mark"] = mark
    assert run.watcher.scan().incomplete
    assert not run.watcher.scan().incomplete


@pytest.mark.parametrize(("root", "published"), [(PosixRoot(b"/ckpt"), True), (S3Root("bucket", "run"), False)])
def test_a_layout_is_told_as_its_kind_of_root_needs_it(root: Root, published: bool) -> None:  # noqa: FBT001
    """watch.2: on S3 an Orbax save is copied object by object, its mark among them."""
    run = Run(framework=FRAMEWORKS["orbax"], root=root)
    run.watcher.begin()
    run.put("7/_CHECKPOINT_METADATA", b'{"commit_timestamp_nsecs": 5}')
    run.watcher.scan()
    assert bool(run.published()) is published
    run.put("7/commit_success.txt", b"done")
    run.watcher.scan()
    assert run.published() == [(2, 7)]
