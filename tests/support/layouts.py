"""Saves as the sources of their frameworks say that they are written, at step 7.

A save is a list of phases with a barrier between them; in each phase every rank does its operations
(as in `recording`), in an order among the ranks that a test draws. Contents are real where a check looks
at them: JSON, the ends of torch's zips, pickled metadata, safetensors headers.
"""

from __future__ import annotations

import base64
import json
import pickle
import random
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.support.recording import Operation

Rank = list[Operation]
Phase = list[Rank]


class WrittenSave(NamedTuple):
    """`after`: what the framework still writes when a loader has all that it needs."""

    phases: list[Phase]
    after: list[Phase]


def in_some_order(phases: list[Phase], seed: int) -> Iterator[Operation]:
    """Each rank's operations in their order, those of different ranks as they come."""
    chance = random.Random(seed)
    for phase in phases:
        waiting = [list(rank) for rank in phase if rank]
        while waiting:
            rank = chance.choice(waiting)
            yield rank.pop(0)
            waiting = [rank for rank in waiting if rank]


def file(path: str, content: bytes) -> Rank:
    """Created and then written in three parts."""
    third = max(1, len(content) // 3)
    parts = [(0, content[:third]), (third, content[third : 2 * third]), (2 * third, content[2 * third :])]
    return [["create", path], *(["write", path, at, base64.b64encode(part).decode()] for at, part in parts if part)]


def files(*paths: str) -> Rank:
    """Files of torch.save, in this order."""
    return [operation for path in paths for operation in file(path, torch_zip(path.encode()))]


def folder(*paths: str) -> Phase:
    return [[["mkdir", path] for path in paths]]


def to_json(path: str, **members: object) -> Rank:
    return file(path, json.dumps(members).encode())


def tracker(name: str, text: str = "7") -> Phase:
    """A plain open("w"): it is there empty for a moment."""
    return [file(name, text.encode())]


def torch_zip(payload: bytes) -> bytes:
    """The beginning and the end of what torch.save writes, with a stand-in for the records between them."""
    body = b"PK\x03\x04" + payload
    directory = b"PK\x01\x02" + bytes(42)
    end = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, len(directory), len(body))
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(body) + len(directory), 1)
    return body + directory + end + locator + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, 0, 0, 0)


def safetensors(size: int = 16) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(size)


class Metadata:
    """Stands for torch's class of this name; readers tell such classes by their attributes."""

    def __init__(self, pieces: dict[str, int]) -> None:
        self.state_dict_metadata: dict[str, object] = {}
        self.storage_data = {path: StorageInfo(path, size) for path, size in pieces.items()}


class StorageInfo:
    def __init__(self, path: str, length: int) -> None:
        self.relative_path, self.offset, self.length = path, 0, length


def dcp(where: str, ranks: int = 2) -> list[Phase]:
    """A distributed checkpoint: the ranks' data, then `.metadata` by a rename."""
    names = [f"__{rank}_0.distcp" for rank in range(ranks)]
    metadata = pickle.dumps(Metadata({name: len(torch_zip(name.encode())) for name in names}), protocol=4)
    data = [file(f"{where}/{name}", torch_zip(name.encode())) for name in names]
    last = file(f"{where}/.metadata.tmp", metadata)
    return [data, [[*last, ["rename", f"{where}/.metadata.tmp", f"{where}/.metadata"]]]]


def hf() -> WrittenSave:
    save = "checkpoint-7"
    rank = [
        *file(f"{save}/model.safetensors", safetensors()),
        *files(*(f"{save}/{name}" for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth"))),
        *to_json(f"{save}/trainer_state.json", epoch=0.5, global_step=7, log_history=[{"loss": 0.25}]),
    ]
    return WrittenSave([folder(save), [rank]], [])


def hf_pre_emption() -> WrittenSave:
    sentinel = "checkpoint-7/checkpoint-is-incomplete.txt"
    (folders, rank), _ = hf()
    return WrittenSave([folders, [file(sentinel, b"")], rank, [[["unlink", sentinel]]]], [])


def llamafactory() -> WrittenSave:
    """The ranks do not wait for each other at the end: another one may still write its random state."""
    save = "checkpoint-7"
    first = to_json(f"{save}/metadata.json", global_step=7, epoch=0)
    parts = [*dcp(f"{save}/model"), *dcp(f"{save}/optimizer")]
    ranks = [files(f"{save}/dataloader/rank_{rank}.pt") for rank in range(2)]
    ranks[0] = files(f"{save}/scheduler.pt") + ranks[0] + files(f"{save}/rng_state/rank_0.pt")
    folders = folder(save, *(f"{save}/{part}" for part in ("model", "optimizer", "dataloader", "rng_state")))
    mark = file(f"{save}/CHECKPOINT_COMPLETE", b"")
    late: Phase = [files(f"{save}/rng_state/rank_1.pt")]
    return WrittenSave([folders, [first], *parts, ranks, [mark]], [late])


def torch_dcp() -> WrittenSave:
    return WrittenSave([folder("step-7"), *dcp("step-7")], [])


def titan_hf() -> WrittenSave:
    save = "step-7"
    shards = [f"model-0000{rank + 1}-of-00002.safetensors" for rank in range(2)]
    sharded = [file(f"{save}/sharded/shard-0000{rank + 1}-{shard}", safetensors()) for rank, shard in enumerate(shards)]
    merged = [file(f"{save}/{shard}", safetensors()) for shard in shards]
    index = to_json(f"{save}/model.safetensors.index.json", weight_map={shard: shard for shard in shards})
    return WrittenSave([folder(save, f"{save}/sharded"), sharded, merged, [index]], [])


MEGATRON = "iter_0000007"
MEGATRON_TRACKER = "latest_checkpointed_iteration.txt"


def megatron() -> WrittenSave:
    mark = to_json(f"{MEGATRON}/metadata.json", sharded_backend="torch_dist", sharded_backend_version=1)
    integrity = to_json(f"{MEGATRON}/integrity.json", algorithm="sha256", files={})
    assets = [file(f"{MEGATRON}/tokenizer.json", b"{}")]
    return WrittenSave([folder(MEGATRON), *dcp(MEGATRON), [mark], [integrity], tracker(MEGATRON_TRACKER)], [assets])


def megatron_with_common() -> WrittenSave:
    """Earlier releases: the state that all ranks share goes first."""
    (folders, *rest), after = megatron()
    return WrittenSave([folders, [files(f"{MEGATRON}/common.pt")], *rest], after)


def megatron_fsdp() -> WrittenSave:
    return WrittenSave([folder(MEGATRON), *dcp(MEGATRON), tracker(MEGATRON_TRACKER)], [])


VERL = "global_step_7"


def _fsdp_role(role: str) -> list[Phase]:
    where = f"{VERL}/{role}"
    ranks = [
        files(*(f"{where}/{kind}_world_size_2_rank_{rank}.pt" for kind in ("model", "optim", "extra_state")))
        for rank in range(2)
    ]
    ranks[0] += [["mkdir", f"{where}/huggingface"], *to_json(f"{where}/huggingface/config.json")]
    ranks[0] += to_json(f"{where}/fsdp_config.json", FSDP_version=2, world_size=2)
    return [folder(where), ranks]


def verl_fsdp() -> WrittenSave:
    data = [files(f"{VERL}/data.pt")]
    roles = [*_fsdp_role("actor"), *_fsdp_role("critic")]
    return WrittenSave([folder(VERL), *roles, data, tracker(MEGATRON_TRACKER)], [])


def _megatron_role(role: str) -> tuple[list[Phase], Phase]:
    where = f"{VERL}/{role}"
    parts = [f"{where}/{part}" for part in ("model", "optimizer", "extra")]
    folders = folder(where, *(path for part in parts for path in (part, f"{part}/dist_ckpt")))
    data = [phase for part in parts for phase in dcp(f"{part}/dist_ckpt")]
    last = to_json(f"{where}/ckpt_contents.json.tmp", schema_version=2)
    return [folders, *data], [[*last, ["rename", f"{where}/ckpt_contents.json.tmp", f"{where}/ckpt_contents.json"]]]


def verl_megatron() -> WrittenSave:
    (actor, actor_mark), (critic, critic_mark) = _megatron_role("actor"), _megatron_role("critic")
    data = [files(f"{VERL}/data.pt")]
    phases = [folder(VERL), *actor, actor_mark, *critic, critic_mark, data, tracker(MEGATRON_TRACKER)]
    return WrittenSave(phases, [])


def verl_megatron_async() -> WrittenSave:
    """The driver's part first; each role finishes later and writes the tracker."""
    (actor, actor_mark), (critic, critic_mark) = _megatron_role("actor"), _megatron_role("critic")
    data = [files(f"{VERL}/data.pt")]
    both = tracker(MEGATRON_TRACKER)
    phases = [folder(VERL), actor[0], critic[0], data, *actor[1:], actor_mark, both, *critic[1:], critic_mark]
    return WrittenSave(phases, [both])


def verl_sft() -> WrittenSave:
    ranks = [
        files(*(f"{VERL}/{kind}_world_size_2_rank_{rank}.pt" for kind in ("model", "optim", "extra_state")))
        for rank in range(2)
    ]
    data = [files(f"{VERL}/data_{rank}.pt") for rank in range(2)]
    number = file(f"{MEGATRON_TRACKER}.tmp", b"7")
    named = [[*number, ["rename", f"{MEGATRON_TRACKER}.tmp", MEGATRON_TRACKER]]]
    return WrittenSave([folder(VERL), ranks, data, named], [])


LIGHTNING = "epoch=0-step=7.ckpt"


def lightning_file() -> WrittenSave:
    """Moved from another filesystem: it grows in its place."""
    return WrittenSave([[files(LIGHTNING)]], [])


def lightning_folder() -> WrittenSave:
    return WrittenSave([folder(LIGHTNING), *dcp(LIGHTNING), [files(f"{LIGHTNING}/meta.pt")]], [])


def _olmo_mark(save: str) -> Phase:
    last = to_json(f"{save}/.metadata.json.tmp", version="3", ephemeral=False)
    return [[*last, ["rename", f"{save}/.metadata.json.tmp", f"{save}/.metadata.json"]]]


def olmo() -> WrittenSave:
    """Synchronous: all in a staging folder."""
    stage, train = "step7-tmp", [files(f"step7-tmp/train/rank{rank}.pt") for rank in range(2)]
    folders = folder(stage, f"{stage}/train", f"{stage}/model_and_optim")
    moved: Phase = [[["rename", stage, "step7"]]]
    config = [file("step7/config.json", b"{}")]
    return WrittenSave([folders, train, *dcp(f"{stage}/model_and_optim"), moved, _olmo_mark("step7")], [config])


def olmo_async() -> WrittenSave:
    """The train state is staged, the model is written in place."""
    stage, train = "step7-tmp", [files(f"step7-tmp/train/rank{rank}.pt") for rank in range(2)]
    moved: Phase = [[["rename", stage, "step7"], ["mkdir", "step7/model_and_optim"]]]
    return WrittenSave(
        [folder(stage, f"{stage}/train"), train, moved, *dcp("step7/model_and_optim"), _olmo_mark("step7")], []
    )


def levanter() -> WrittenSave:
    save = "step-7"
    data = [file(f"{save}/d/{rank}", b"array" * 9) + file(f"{save}/manifest.{rank}", b"ocdbt") for rank in range(2)]
    mark = to_json(f"{save}/metadata.json", step=7, timestamp="2026-12-02T11:00:00", is_temporary=False)
    return WrittenSave([folder(save, f"{save}/d"), data, [mark]], [])


def _orbax_items(save: str) -> list[Phase]:
    data = [file(f"{save}/default/d/{rank}", b"array" * 9) for rank in range(2)]
    return [folder(save, f"{save}/default", f"{save}/default/d"), data, [file(f"{save}/default/manifest.ocdbt", b"m")]]


def orbax() -> WrittenSave:
    """On a filesystem: all in a temporary folder, whose mark is written, rewritten and renamed with it."""
    stage = "7.orbax-checkpoint-tmp"
    begun = to_json(f"{stage}/_CHECKPOINT_METADATA", item_handlers={}, init_timestamp_nsecs=1)
    ended = to_json(f"{stage}/_CHECKPOINT_METADATA", init_timestamp_nsecs=1, commit_timestamp_nsecs=2)
    return WrittenSave([*_orbax_items(stage), [begun], [ended], [[["rename", stage, "7"]]]], [])


def orbax_in_place() -> WrittenSave:
    """On an object store, with AtomicityMode.COMMIT_FILE."""
    begun = to_json("7/_CHECKPOINT_METADATA", item_handlers={}, init_timestamp_nsecs=1)
    ended = to_json("7/_CHECKPOINT_METADATA", init_timestamp_nsecs=1, commit_timestamp_nsecs=2)
    return WrittenSave([*_orbax_items("7"), [begun], [ended], [file("7/commit_success.txt", b"done")]], [])


def skyrl() -> WrittenSave:
    save = "global_step_7"
    policy = [
        files(*(f"{save}/policy/{kind}_world_size_2_rank_{rank}.pt" for kind in ("model", "optim", "extra_state")))
        for rank in range(2)
    ]
    driver = [files(f"{save}/data.pt", f"{save}/trainer_state.pt")]
    return WrittenSave([folder(save, f"{save}/policy"), policy, driver, tracker("latest_ckpt_global_step.txt")], [])


def openrlhf() -> WrittenSave:
    save = "global_step7"
    ranks = [files(f"{save}/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt") for rank in range(2)]
    ranks[0] = files(f"{save}/mp_rank_00_model_states.pt") + ranks[0] + file("latest", b"global_step7")
    return WrittenSave([folder(save), ranks, [to_json(f"{save}/metric.json", metric=None)]], [])


def automodel() -> WrittenSave:
    stage, save = "epoch_0_step_7.reserving-0a1b", "epoch_0_step_7"
    reserved: Phase = [[["mkdir", stage], *file(f"{stage}/.incomplete", b""), ["rename", stage, save]]]
    parts = folder(f"{save}/model", f"{save}/optim", f"{save}/rng")
    ranks = [
        file(f"{save}/model/shard-{rank}.safetensors", safetensors())
        + files(f"{save}/optim/__{rank}_0.distcp", f"{save}/rng/rng_dp_rank_{rank}.pt")
        for rank in range(2)
    ]
    config = [file(f"{save}/config.yaml", b"seed: 1\n")]
    return WrittenSave([reserved, parts, ranks, config, [[["unlink", f"{save}/.incomplete"]]]], [])


def nemo_rl() -> WrittenSave:
    stage = "tmp_step_7"
    info = [to_json(f"{stage}/training_info.json", step=7)]
    folders = folder(stage, f"{stage}/policy", f"{stage}/policy/weights")
    return WrittenSave([folders, info, *dcp(f"{stage}/policy/weights"), [[["rename", stage, "step_7"]]]], [])


WRITTEN: list[tuple[str, Callable[[], WrittenSave]]] = [
    ("hf", hf),
    ("hf", hf_pre_emption),
    ("llamafactory", llamafactory),
    ("dcp", torch_dcp),
    ("dcp", titan_hf),
    ("dcp", lightning_folder),
    ("megatron", megatron),
    ("megatron", megatron_with_common),
    ("megatron", megatron_fsdp),
    ("verl", verl_fsdp),
    ("verl", verl_megatron),
    ("verl", verl_megatron_async),
    ("verl", verl_sft),
    ("lightning", lightning_file),
    ("lightning", lightning_folder),
    ("olmo", olmo),
    ("olmo", olmo_async),
    ("levanter", levanter),
    ("orbax", orbax),
    ("orbax", orbax_in_place),
    ("skyrl", skyrl),
    ("openrlhf", openrlhf),
    ("automodel", automodel),
    ("nemo-rl", nemo_rl),
]
