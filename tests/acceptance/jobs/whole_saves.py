"""Writes saves of every kind that torch itself can write, each in a folder of its own below the one that is given."""

from __future__ import annotations

import collections
import datetime as dt
import os
import pathlib
import sys
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint import FileSystemWriter, HuggingFaceStorageWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

RANKS = 2


def state() -> dict[str, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 8)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": 7,
        "when": dt.datetime.now(dt.UTC),
        "path": pathlib.PurePosixPath("/x"),
        "nested": collections.OrderedDict(a=[1, (2, {"b": {3}})]),
        "none": None,
        "empty": torch.zeros(0),
        "scalar": torch.tensor(1.0),
        "strided": torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last),
        **{str(kind): torch.zeros(3).to(kind) for kind in (torch.bfloat16, torch.complex64, torch.float8_e4m3fn)},
    }


def distributed(rank: int, saves: str) -> None:
    os.chdir(saves)
    dist.init_process_group("gloo", init_method=f"file://{saves}/../rendezvous", rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    shards = {f"shard{axis}": distribute_tensor(torch.randn(10, 7), mesh, [Shard(axis)]) for axis in (0, 1)}
    whole = {**state(), **shards}
    dcp.save(whole, checkpoint_id="dcp")
    dcp.save(whole, checkpoint_id="dcp-alone", use_collectives=False)
    dcp.save(whole, storage_writer=FileSystemWriter("dcp-file-per-piece", single_file_per_rank=False))
    dcp.save(whole, storage_writer=FileSystemWriter("dcp-threads", thread_count=3))
    dcp.async_save(whole, checkpoint_id="dcp-async").result()
    names = {"shard0": 1, "shard1": 2}
    for folder, consolidated in (("hf", True), ("hf-shards", False)):
        dcp.save(
            shards,
            storage_writer=HuggingFaceStorageWriter(
                path=folder,
                save_distributed=True,
                enable_consolidation=consolidated,
                fqn_to_index_mapping=names if consolidated else None,
            ),
        )
    os.makedirs("ranks", exist_ok=True)
    for name in (
        f"model_world_size_{RANKS}_rank_{rank}.pt",
        f"rng_state_{rank}.pth",
        f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt",
        f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt",
    ):
        torch.save(whole["optimizer"], f"ranks/{name}")
    dist.barrier()
    dist.destroy_process_group()


def alone(saves: str) -> None:
    dcp.save(state(), checkpoint_id=f"{saves}/dcp-one-rank", no_dist=True)
    os.makedirs(f"{saves}/files")
    for protocol in (2, 3, 4, 5):
        torch.save(state(), f"{saves}/files/zip{protocol}.pt", pickle_protocol=protocol)
    torch.save(torch.zeros(1_000_000), f"{saves}/files/pytorch_model.bin")
    os.makedirs(f"{saves}/old-files")
    for protocol in (2, 3, 4, 5):
        path = f"{saves}/old-files/old{protocol}.pt"
        torch.save(state(), path, pickle_protocol=protocol, _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    mp.spawn(distributed, (sys.argv[1],), nprocs=RANKS)
    alone(sys.argv[1])
