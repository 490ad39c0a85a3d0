"""Saves a tiny model twice, at steps 5 and 10, with the save code of one real framework that runs on torch.

`torch_saves.py FRAMEWORK FOLDER`, in the environment that has the frameworks, not in that of the tests.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

STEPS = (5, 10)


def model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))


def trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model and an optimizer that has a state."""
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    net(torch.ones(4, 8)).pow(2).mean().backward()
    optimizer.step()
    return net, optimizer


def hf_two_ranks(saves: Path) -> None:
    """Transformers' Trainer with data-parallel ranks, which each write their own random state."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

    set_seed(1)
    tokens = torch.randint(0, 64, (64, 16), generator=torch.Generator().manual_seed(7))
    data = [{"input_ids": row, "labels": row} for row in tokens]
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    arguments = TrainingArguments(
        output_dir=str(saves),
        max_steps=STEPS[-1],
        save_steps=STEPS[0],
        per_device_train_batch_size=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    Trainer(GPT2LMHeadModel(config), arguments, train_dataset=data).train()


def dcp(saves: Path) -> None:
    """torch.distributed.checkpoint with sharded weights."""
    from torch.distributed import checkpoint
    from torch.distributed.fsdp import fully_shard

    net = model()
    fully_shard(net)
    for step in STEPS:
        checkpoint.save({"model": net.state_dict()}, checkpoint_id=saves / f"step-{step}")


def dcp_async(saves: Path) -> None:
    """The same, written in the background."""
    from torch.distributed import checkpoint
    from torch.distributed.fsdp import fully_shard

    net = model()
    fully_shard(net)
    for step in STEPS:
        checkpoint.async_save({"model": net.state_dict()}, checkpoint_id=saves / f"step-{step}").result()


class _Nothing:
    """A part of a trainer that has no state."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class _AsItIs:
    """torchtitan's adapter between a model's own names and Hugging Face's, for a model that has only one kind."""

    def __init__(self) -> None:
        self.fqn_to_index_mapping = {name: 1 + index % 2 for index, name in enumerate(model().state_dict())}

    def to_hf(self, state: dict[str, Any]) -> dict[str, Any]:
        return state


def torchtitan(saves: Path) -> None:
    """torchtitan's checkpoint manager; the last save is of the model only, in safetensors files."""
    from torch.distributed.fsdp import fully_shard
    from torchtitan.components.checkpointer.dcp import CheckpointManager

    net = model()
    fully_shard(net)
    config = CheckpointManager.Config(
        enable=True, interval=STEPS[0], keep_latest_k=0, folder=".", last_save_in_hf=True, async_mode="async"
    )
    manager = CheckpointManager(
        config,
        dataloader=_Nothing(),
        model_parts=[net],
        optimizers=_Nothing(),
        lr_schedulers=_Nothing(),
        states={},
        sd_adapter=_AsItIs(),
        base_folder=str(saves),
    )
    for step in STEPS:
        manager.save(step, last_step=step == STEPS[-1])
    manager.close()


def lightning(saves: Path) -> None:
    """Lightning's ModelCheckpoint with its default names. TMPDIR is where a file is written first."""
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint

    pl.Trainer(
        max_steps=STEPS[-1],
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        callbacks=[ModelCheckpoint(dirpath=saves, every_n_train_steps=STEPS[0], save_top_k=-1)],
    ).fit(_lightning_module(), torch.utils.data.DataLoader(torch.ones(64, 8), batch_size=2))


def lightning_sharded(saves: Path) -> None:
    """Lightning's ModelParallelStrategy, which writes a distributed checkpoint and then `meta.pt`."""
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.strategies import ModelParallelStrategy

    pl.Trainer(
        max_steps=STEPS[-1],
        accelerator="cpu",
        devices=1,
        num_nodes=2,
        strategy=ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1, process_group_backend="gloo"),
        logger=False,
        enable_progress_bar=False,
        callbacks=[ModelCheckpoint(dirpath=saves, every_n_train_steps=STEPS[0], save_top_k=-1)],
    ).fit(_lightning_module(sharded=True), torch.utils.data.DataLoader(torch.ones(64, 8), batch_size=2))


def _lightning_module(*, sharded: bool = False) -> Any:  # noqa: ANN401  (a class of Lightning's)
    import lightning.pytorch as pl
    from torch.distributed.fsdp import fully_shard

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = model()

        def configure_model(self) -> None:
            if sharded:
                fully_shard(self.net, mesh=self.device_mesh["data_parallel"])

        def training_step(self, batch: torch.Tensor) -> torch.Tensor:
            return self.net(batch).pow(2).mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    return Module()


def megatron(saves: Path) -> None:
    """Megatron-Core's dist_checkpointing; the tracker is what Megatron-LM's save_checkpoint adds after a barrier."""
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing import ShardedTensor

    # It waits for the GPU and counts failures on it; there is none.
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: torch.device("cpu")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in STEPS:
        folder = saves / f"iter_{step:07d}"
        if rank == 0:
            folder.mkdir()
        dist.barrier()
        weights = torch.full((16, 8), float(step * ranks + rank))
        state = {
            "weights": ShardedTensor.from_rank_offsets("weights", weights, (0, rank, ranks)),
            "iteration": step,
        }
        dist_checkpointing.save(state, str(folder))
        dist.barrier()
        if rank == 0:
            (saves / "latest_checkpointed_iteration.txt").write_text(str(step))


def deepspeed(saves: Path) -> None:
    """DeepSpeed's engine with ZeRO 2, and OpenRLHF's `metric.json` after the barrier that ends its save."""
    import deepspeed as ds

    net = model()
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
        "zero_optimization": {"stage": 2},
    }
    engine, *_ = ds.initialize(model=net, model_parameters=net.parameters(), config=config)
    for step in STEPS:
        engine.save_checkpoint(str(saves), tag=f"global_step{step}", client_state={})
        if dist.get_rank() == 0:
            (saves / f"global_step{step}" / "metric.json").write_text(json.dumps({"metric": None}))


class _TrainModule:
    """The part of OLMo-core's trainer that its checkpointer asks for a state."""

    def state_dict_to_save(self) -> dict[str, Any]:
        return {"model": model().state_dict()}


def olmo(saves: Path) -> None:
    """OLMo-core's checkpointer: the first save in the foreground, the second one in the background."""
    from olmo_core.train.checkpoint import Checkpointer

    checkpointer = Checkpointer(saves.parent / "work", process_group=dist.new_group(backend="gloo"))
    first, second = STEPS
    checkpointer.save(saves / f"step{first}", _TrainModule(), {"global_step": first})
    checkpointer.save_async(saves / f"step{second}", _TrainModule(), {"global_step": second}).result()
    # The mark is written in a callback of the future.
    while not (saves / f"step{second}" / ".metadata.json").exists():
        time.sleep(0.01)
    dist.barrier()


def automodel(saves: Path) -> None:
    """NeMo Automodel's checkpoint lifecycle, with the files of a recipe between its reservation and its publication."""
    from nemo_automodel.components.checkpoint.config import CheckpointingConfig
    from nemo_automodel.components.checkpoint.lifecycle import CheckpointLifecycle

    lifecycle = CheckpointLifecycle(CheckpointingConfig(checkpoint_dir=saves))
    for step in STEPS:
        save = saves / f"epoch_0_step_{step}"
        lifecycle.reserve(str(save))
        torch.save(model().state_dict(), save / f"rank_{dist.get_rank()}.pt")
        if dist.get_rank() == 0:
            (save / "config.yaml").write_text("seed: 1\n")
        dist.barrier()
        lifecycle.publish(str(save), best_val_metric=None, metric_key=None)


def _language_model() -> torch.nn.Module:
    """A tiny model of Transformers, sharded."""
    from torch.distributed.fsdp import fully_shard
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    net = GPT2LMHeadModel(config)
    fully_shard(net)
    return net


def _trained_language_model() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    net = _language_model()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    tokens = torch.zeros(1, 4, dtype=torch.long)
    net(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    return net, optimizer


def verl(saves: Path) -> None:
    """veRL's FSDP checkpoint manager for actor and critic; `data.pt` and the tracker are what its driver adds."""
    from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager

    roles = {role: FSDPCheckpointManager(*_trained_language_model()) for role in ("actor", "critic")}
    for step in STEPS:
        save = saves / f"global_step_{step}"
        for role, manager in roles.items():
            manager.save_checkpoint(str(save / role), global_step=step)
            dist.barrier()  # the driver waits for all workers
        if dist.get_rank() == 0:
            torch.save({}, save / "data.pt")
            (saves / "latest_checkpointed_iteration.txt").write_text(str(step))
        dist.barrier()


def verl_sft(saves: Path) -> None:
    """veRL's checkpoint handler of supervised training, which writes the tracker without a barrier."""
    from verl.utils.checkpoint.checkpoint_handler import CheckpointHandler
    from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager

    class Engine(FSDPCheckpointManager):
        """What the handler asks of an engine that is data-parallel only."""

        def is_mp_src_rank_with_outputs(self) -> bool:
            return True

        def get_data_parallel_rank(self) -> int:
            rank: int = dist.get_rank()
            return rank

    handler = CheckpointHandler(Engine(*_trained_language_model()), _Nothing(), default_local_dir=str(saves))
    for step in STEPS:
        handler.save_checkpoint(step)


def llamafactory(saves: Path) -> None:
    """LLaMA-Factory v1's checkpoint coordinator with FSDP2."""
    from types import SimpleNamespace

    from llamafactory.v1.accelerator import helper
    from llamafactory.v1.accelerator.interface import DistributedInterface
    from llamafactory.v1.core.utils.checkpoint import TrainingCheckpointCoordinator

    # It waits for the accelerator, of which there is none. (It does not wait for other ranks.)
    helper.synchronize = lambda: None
    DistributedInterface()
    net, optimizer = _trained_language_model()
    trainer = SimpleNamespace(
        args=SimpleNamespace(
            output_dir=str(saves),
            dist_config=SimpleNamespace(name="fsdp2"),
            save_ckpt_as_hf=False,
            save_total_limit=None,
        ),
        model=net,
        optimizer=optimizer,
        lr_scheduler=torch.optim.lr_scheduler.ConstantLR(optimizer),
        renderer=SimpleNamespace(processor=None),
        train_batch_generator=_Nothing(),
        num_training_steps=STEPS[-1],
        global_step=0,
    )
    for step in STEPS:
        trainer.global_step = step
        TrainingCheckpointCoordinator(trainer).save(epoch=0)
        dist.barrier()


RANKS = {"lightning": 1}


def main(name: str, saves: str) -> None:
    ranks = RANKS.get(name, 2)
    if "RANK" not in os.environ and ranks > 1:
        sys.exit(start_ranks(ranks))
    if ranks > 1 and name not in {"hf_two_ranks", "lightning_sharded", "llamafactory"}:
        dist.init_process_group("gloo")
    globals()[name](Path(saves))
    sys.stdout.flush()
    # Megatron-Core's writer leaves a process that would outlive this one.
    for child in multiprocessing.active_children():
        child.kill()
    # All is done. On the way out of the interpreter torch's own threads now and then abort a process that has saved.
    os._exit(0)


def start_ranks(ranks: int) -> int:
    """Runs this script once per rank, as torchrun does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    started = [
        subprocess.Popen(
            [sys.executable, *sys.argv],
            env=os.environ | common | {"RANK": str(rank), "LOCAL_RANK": "0", "NODE_RANK": str(rank)},
        )
        for rank in range(ranks)
    ]
    return max(abs(process.wait()) for process in started)


if __name__ == "__main__":
    main(*sys.argv[1:])
