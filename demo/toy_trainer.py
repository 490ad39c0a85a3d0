"""A trainer that learns nothing, yet saves as the real ones do: the same files, in the same order.

`hf` writes what a Hugging Face Trainer writes, `trainer_state.json` last; `dcp` what torch's
distributed checkpoints do, `.metadata` last and by a rename. Its weights follow from the step
alone, so a run that was interrupted and resumed must end with the bytes of one that was not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

WEIGHTS = 512


def main() -> None:
    """Trains from a save, or from nothing, up to a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=["hf", "dcp"], required=True)
    parser.add_argument("--saves", type=Path, required=True, help="the folder that saves go to")
    parser.add_argument("--resume", default="", help="the save to go on from; empty: from step 0")
    parser.add_argument("--until", type=int, required=True, help="the last step")
    parser.add_argument("--every", type=int, default=10, help="save every N steps, and at the last")
    parser.add_argument("--pace", type=float, default=0.01, help="seconds a step takes")
    wanted = parser.parse_args()
    # Stand still for ever in the middle of this step's save.
    halt_in_save = os.environ.get("TOY_HALT_IN_SAVE")

    step, weights = load(wanted.framework, Path(wanted.resume)) if wanted.resume else (0, [1] * WEIGHTS)
    print(f"trainer: starts at step {step}", flush=True)
    while step < wanted.until:
        time.sleep(wanted.pace)
        step += 1
        weights = [(weight * 6364136223846793005 + index + step) % 2**64 for index, weight in enumerate(weights)]
        if step % wanted.every == 0 or step == wanted.until:
            save(wanted.framework, wanted.saves, step, weights, halt=str(step) == halt_in_save)
            print(f"trainer: saved step {step}", flush=True)


def save(framework: str, saves: Path, step: int, weights: list[int], *, halt: bool) -> None:
    """Writes a save; with `halt` the first half of it, and does not return."""
    content = b"".join(weight.to_bytes(8, "little") for weight in weights)
    if framework == "hf":
        folder = saves / f"checkpoint-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"model_type": "toy"}, indent=2) + "\n")
        (folder / "model.safetensors").write_bytes(safetensors_header(len(content)) + content)
        for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth"):
            (folder / name).write_bytes(b"\x80" + os.urandom(1000))  # as a pickle begins
        state = json.dumps(trainer_state(step), indent=2, sort_keys=True) + "\n"
        with (folder / "trainer_state.json").open("w") as marker:
            marker.write(state[: len(state) // 2])
            if halt:
                marker.flush()
                stand_still(step)
            marker.write(state[len(state) // 2 :])
    else:
        folder = saves / f"step-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__0_0.distcp").write_bytes(content)
        (folder / "__1_0.distcp").write_bytes(os.urandom(1000))
        (folder / ".metadata.tmp").write_bytes(b"{}")
        if halt:
            stand_still(step)
        (folder / ".metadata.tmp").rename(folder / ".metadata")


def load(framework: str, folder: Path) -> tuple[int, list[int]]:
    """The step and the weights of a save. A save that is not whole stops the run."""
    if framework == "hf":
        step = json.loads((folder / "trainer_state.json").read_text())["global_step"]
        content = (folder / "model.safetensors").read_bytes()[-8 * WEIGHTS :]
    else:
        if not (folder / ".metadata").is_file():
            sys.exit(f"trainer: not a whole save: {folder}")
        step = int(folder.name.removeprefix("step-"))
        content = (folder / "__0_0.distcp").read_bytes()
    return step, [int.from_bytes(content[at : at + 8], "little") for at in range(0, len(content), 8)]


def safetensors_header(size: int) -> bytes:
    """The header of a file that holds one tensor of `size` bytes (the length of the rest, then JSON)."""
    tensor = {"weights": {"dtype": "U64", "shape": [size // 8], "data_offsets": [0, size]}}
    header = json.dumps(tensor).encode()
    return len(header).to_bytes(8, "little") + header


def trainer_state(step: int) -> dict[str, object]:
    """What a Trainer keeps beside its weights, in short."""
    return {
        "best_metric": None,
        "epoch": step / 100,
        "global_step": step,
        "log_history": [{"loss": 1 / at, "step": at} for at in range(10, step + 1, 10)],
        "stateful_callbacks": {"TrainerControl": {"args": {"should_save": True}, "attributes": {}}},
    }


def stand_still(step: int) -> None:
    """Waits to be killed."""
    print(f"trainer: is in the middle of saving step {step}", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
