"""Saves a tiny state twice, at steps 5 and 10, with Orbax's checkpoint manager, on the CPU.

`orbax_saves.py FOLDER`, in the environment that has the frameworks, not in that of the tests.
"""

from __future__ import annotations

import sys

import jax.numpy as jnp
import orbax.checkpoint as ocp


def main(saves: str) -> None:
    with ocp.CheckpointManager(saves) as manager:
        for step in (5, 10):
            state = {"weights": jnp.full((16, 8), step, dtype=jnp.float32), "step": step}
            manager.save(step, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()


if __name__ == "__main__":
    main(sys.argv[1])
