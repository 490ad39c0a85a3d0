"""A Trainer callback that publishes each save from the training process, so that no watcher is needed.

    trainer = Trainer(..., callbacks=[PublishSaves(root="/ckpt/run-7", epoch=4)])
    trainer.train(resume_from_checkpoint=resume or None)  # `resume`: what `publish resolve` printed

`output_dir` lies under `root`, and `save_total_limit` stays unset: `publish prune` removes old saves.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import torch.distributed
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class PublishSaves(TrainerCallback):
    """Publishes every save once all ranks have written their part of it.

    `flags` are further ones of `publish publish`: `["-sync=false"]` for instance.
    """

    def __init__(self, root: str, epoch: int, flags: list[str] | None = None, program: str = "publish") -> None:
        self.command = [program, "publish", "-checkpoint", root, "-epoch", str(epoch), *(flags or [])]

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002  (Trainer passes it)
        **kwargs: object,  # noqa: ARG002  (the same)
    ) -> None:
        """Trainer calls this on every rank. A save that cannot be published ends the training: see `check`."""
        # Each rank writes its own rng_state file, and Trainer itself waits for none of them.
        if torch.distributed.is_initialized():
            torch.distributed.barrier()
        if state.is_world_process_zero:
            save = Path(args.output_dir, f"checkpoint-{state.global_step}")
            # check: an unpublished save is one that a restart would not find; better to stop than to train on.
            subprocess.run([*self.command, str(save), str(state.global_step)], check=True)
