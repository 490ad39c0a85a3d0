"""A training job with torch's real distributed checkpoints: several processes, sharded weights, gloo on the CPU.

Runs in the environment that has torch, not in that of the tests. It starts its ranks, unless torchrun does.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from dcp_save import save_and_publish
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import fully_shard

RANKS = 2
Process = get_context("fork").Process


class Job(Stateful):
    """What a save holds: the sharded weights, the optimizer and the step."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
        fully_shard(self.model, mesh=dist.device_mesh.init_device_mesh("cpu", (RANKS,)))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.step = 0

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.step = state["step"]

    def train(self) -> None:
        """One step, on data that follow from it."""
        self.step += 1
        batch = torch.randn(4, 8, generator=torch.Generator().manual_seed(self.step * RANKS + dist.get_rank()))
        self.optimizer.zero_grad()
        self.model(batch).pow(2).mean().backward()
        self.optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--saves", required=True)
    parser.add_argument("--resume", default="")
    parser.add_argument("--until", type=int, required=True)
    parser.add_argument("--pace", type=float, default=0, help="seconds a step takes")
    parser.add_argument("--die-in-save", type=int)
    parser.add_argument("--publish-to", help="the checkpoint root, to publish from inside")
    parser.add_argument("--epoch", type=int)
    wanted = parser.parse_args()
    if "RANK" in os.environ:
        train(wanted, "env://", int(os.environ["RANK"]))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        start_ranks(wanted, f"file://{folder}/meet")


def train(wanted: argparse.Namespace, meeting: str, rank: int) -> NoReturn:
    """What one rank does."""
    if wanted.die_in_save is not None:
        die_in_save(f"step-{wanted.die_in_save}")
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=RANKS)
    job = Job()
    if wanted.resume:
        dcp.load({"job": job}, checkpoint_id=wanted.resume)
    if dist.get_rank() == 0:
        print(f"starts at step {job.step}", flush=True)
    while job.step < wanted.until:
        time.sleep(wanted.pace)
        job.train()
        if job.step % 5 == 0:
            if wanted.publish_to:
                save_and_publish({"job": job}, job.step, wanted.saves, wanted.publish_to, wanted.epoch)
            else:
                dcp.save({"job": job}, checkpoint_id=Path(wanted.saves, f"step-{job.step}"))
    weights = [parameter.full_tensor() for parameter in job.model.parameters()]
    if dist.get_rank() == 0:
        torch.save(weights, Path(wanted.saves, "weights.pt"))
        print(f"trained to step {job.step}", flush=True)
    dist.destroy_process_group()
    sys.stdout.flush()
    # All is done. On the way out of the interpreter torch's own threads now and then abort a process that has trained.
    os._exit(0)


def start_ranks(wanted: argparse.Namespace, meeting: str) -> NoReturn:
    """Forks a process per rank and ends as they do; when one dies the others are killed, as a launcher does.

    Forked and not started anew, because each import of torch takes seconds.
    """
    ranks = [Process(target=train, args=(wanted, meeting, rank)) for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
    statuses = []
    for rank in ranks:
        rank.join()
        statuses.append(rank.exitcode)
        if statuses[-1]:
            for other in ranks:
                other.kill()
    failed = next((status for status in statuses if status), 0)
    if failed < 0:
        os.kill(os.getpid(), -failed)
    sys.exit(failed)


def die_in_save(folder: str) -> None:
    """SIGKILL when all of this save is on disk but for `.metadata`, which is about to get its name."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.rename" and Path(os.fsdecode(arguments[1])).parts[-2:] == (folder, ".metadata"):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    main()
