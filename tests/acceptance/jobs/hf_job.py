"""A training job with the real Hugging Face Trainer: a tiny model with random weights, on the CPU, with no hub.

Runs in the environment that has the frameworks, not in that of the tests.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

import torch
from trainer_callback import PublishSaves
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerState, TrainingArguments, set_seed


class Sentences(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """The same random tokens in every run."""

    def __init__(self) -> None:
        self.tokens = torch.randint(0, 64, (64, 16), generator=torch.Generator().manual_seed(7))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--saves", required=True)
    parser.add_argument("--resume", default="")
    parser.add_argument("--until", type=int, required=True)
    parser.add_argument("--die-in-save", type=int)
    parser.add_argument("--publish-to", help="the checkpoint root, to publish from inside")
    parser.add_argument("--epoch", type=int)
    wanted = parser.parse_args()
    if wanted.die_in_save is not None:
        die_in_save(wanted.die_in_save)

    set_seed(1)
    config = GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    arguments = TrainingArguments(
        output_dir=wanted.saves,
        max_steps=wanted.until,
        save_steps=5,
        logging_steps=2,
        per_device_train_batch_size=4,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    callbacks = [PublishSaves(wanted.publish_to, wanted.epoch)] if wanted.publish_to else []
    trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=Sentences(), callbacks=callbacks)
    trainer.train(resume_from_checkpoint=wanted.resume or None)
    print(f"trained to step {trainer.state.global_step}", flush=True)


def die_in_save(step: int) -> None:
    """SIGKILL when half of this step's `trainer_state.json` is on disk."""
    whole = TrainerState.save_to_json

    def half(self: TrainerState, json_path: str) -> None:
        whole(self, json_path)
        if self.global_step == step and Path(json_path).parent.name == f"checkpoint-{step}":
            os.truncate(json_path, os.path.getsize(json_path) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    TrainerState.save_to_json = half


if __name__ == "__main__":
    main()
