"""Every row of the table, against saves that are written one operation at a time in the order of the sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from publish.domain.frameworks import FRAMEWORKS
from publish.domain.root import S3Root
from publish.domain.watch import Watcher
from tests.support.fakes import FakeReport, FakeStore
from tests.support.layouts import (
    MEGATRON,
    MEGATRON_TRACKER,
    WRITTEN,
    WrittenSave,
    in_some_order,
    megatron,
    orbax_in_place,
)
from tests.support.recording import replay
from tests.support.watched_directory import WatchedFolder

# What is recognised on an object store only.
IN_PLACE = {orbax_in_place}
CASES = [case for case in WRITTEN if case[1] not in IN_PLACE]
ORDERS = range(4)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("framework", "written"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_a_watch_that_scans_after_every_operation_publishes_at_the_end_and_not_before(
    framework: str, written: Callable[[], WrittenSave], order: int, tmp_path: Path
) -> None:
    """watch.1, watch.2: the save cut off after any operation is not complete."""
    watched = WatchedFolder(tmp_path, framework)
    phases, after = written()
    operations = list(in_some_order(phases, order))
    for operation in replay(operations[:-1], watched.saves):
        assert watched.scan() == [], operation
        assert watched.scan() == [], f"not written on since {operation}"
    for _ in replay([operations[-1], *in_some_order(after, order)], watched.saves):
        watched.scan()
    watched.scan()
    assert len(watched.published()) == 1


@pytest.mark.parametrize("order", ORDERS)
def test_dcp_does_not_take_a_save_of_megatron(order: int, tmp_path: Path) -> None:
    """watch.3: .metadata is not its last file, and `-framework megatron` knows which is."""
    watched = WatchedFolder(tmp_path, "dcp")
    for operation in replay(list(in_some_order([*megatron().phases, *megatron().after], order)), watched.saves):
        assert watched.scan() == [], operation


def test_a_save_of_megatron_under_a_tracker_that_is_ahead_waits_for_its_last_file(tmp_path: Path) -> None:
    """watch.2: a rollback writes iterations that the tracker has long passed."""
    watched = WatchedFolder(tmp_path, "megatron")
    (watched.saves / MEGATRON_TRACKER).write_text("2000")
    data = megatron().phases[:-2]
    operations = list(in_some_order(data, 1))
    mark = next(number for number, (kind, path, *_) in enumerate(operations) if path.endswith("/metadata.json"))
    for operation in replay(operations[: mark + 1], watched.saves):
        assert watched.scan() == [], operation
    for _ in replay(operations[mark + 1 :], watched.saves):
        watched.scan()
    assert watched.published() == [MEGATRON]


def test_a_save_of_orbax_on_an_object_store_waits_for_its_last_object() -> None:
    """watch.2: objects appear one by one, and whole."""
    phases, _ = orbax_in_place()
    objects = dict.fromkeys(str(path) for kind, path, *_ in in_some_order(phases, 1) if kind == "create")
    store, report = FakeStore(), FakeReport()
    watcher = Watcher(store, report, S3Root("bucket", "run"), FRAMEWORKS["orbax"], b"saves", 1)
    watcher.begin()
    begun, ended = b'{"init_timestamp_nsecs": 1}', b'{"commit_timestamp_nsecs": 2}'
    for path in objects:
        content = begun if path.endswith("_CHECKPOINT_METADATA") else b"x"
        store.files[b"saves/" + path.encode()] = content
        watcher.scan()
        assert report.said == [], path
    store.files[b"saves/7.orbax-checkpoint-tmp/x"] = b"x"
    store.files[b"saves/7/_CHECKPOINT_METADATA"] = ended
    watcher.scan()
    assert report.said == []
    del store.files[b"saves/7.orbax-checkpoint-tmp/x"]
    watcher.scan()
    assert [said for said, _ in report.said] == ["published"]
