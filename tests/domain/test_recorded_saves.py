"""Saves that the real frameworks made, recorded call by call (tests/acceptance/test_recorded_saves.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore
from publish.domain.wholeness import check_save
from tests.support.recording import Operation, load, replay
from tests.support.watched_directory import WatchedFolder

RECORDINGS = Path(__file__).parents[1] / "samples/recordings"

# The job that made each, the framework that must recognise it, and its saves.
RECORDED = [
    ("hf_two_ranks", "hf", ["checkpoint-5", "checkpoint-10"]),
    ("dcp", "dcp", ["step-5", "step-10"]),
    ("dcp_async", "dcp", ["step-5", "step-10"]),
    ("torchtitan", "dcp", ["step-5", "step-10"]),
    ("lightning", "lightning", ["epoch=0-step=5.ckpt", "epoch=0-step=10.ckpt"]),
    ("lightning_sharded", "lightning", ["epoch=0-step=5.ckpt", "epoch=0-step=10.ckpt"]),
    ("lightning_sharded", "dcp", ["epoch=0-step=5.ckpt", "epoch=0-step=10.ckpt"]),
    ("megatron", "megatron", ["iter_0000005", "iter_0000010"]),
    ("verl", "verl", ["global_step_5", "global_step_10"]),
    ("verl_sft", "verl", ["global_step_5", "global_step_10"]),
    ("llamafactory", "llamafactory", ["checkpoint-5", "checkpoint-10"]),
    ("deepspeed", "openrlhf", ["global_step5", "global_step10"]),
    ("orbax", "orbax", ["5", "10"]),
    ("olmo", "olmo", ["step5", "step10"]),
    ("automodel", "automodel", ["epoch_0_step_5", "epoch_0_step_10"]),
]


@pytest.mark.parametrize(("job", "framework", "saves"), RECORDED, ids=str)
def test_a_real_save_is_published_with_its_last_operation_and_not_before(
    job: str, framework: str, saves: list[str], tmp_path: Path
) -> None:
    """watch.1, watch.2, verify.6: the recording is replayed, and the watch scans after every operation."""
    check_replay(load(RECORDINGS / f"{job}.jsonl.gz"), framework, saves, tmp_path)


def check_replay(operations: list[Operation], framework: str, saves: list[str], root: Path) -> None:
    last = {save: _last_operation(operations, save) for save in saves}
    watched = WatchedFolder(root, framework)
    for number, operation in enumerate(replay(operations, watched.saves)):
        for save in watched.scan():
            assert number >= last[save], f"{save} is published early, after {operation[:2]}"
    watched.scan()
    assert watched.published() == saves
    for save in saves:
        assert check_save(PosixStore(bytes(root)), b"saves/" + save.encode(), map).faults == []


def _last_operation(operations: list[Operation], save: str) -> int:
    """The number of the last operation on the save's own files, or on what becomes the save."""
    return max(
        number
        for number, (_, path, *rest) in enumerate(operations)
        if f"{path}/".startswith(f"{save}/") or (rest and rest[0] == save)
    )
