"""Saves with torch's distributed checkpoints and publishes from rank 0, so that no watcher is needed.

    save_and_publish({"app": app_state}, step, saves="/ckpt/run-7/exec/try-4", root="/ckpt/run-7", epoch=4)

`saves` and `root` may be `s3://` URLs; PyTorch then needs s3fs, and `flags` hold `-creds LIST`.

With `dcp.async_save`, do the same once the future it returns has its result, on every rank.
"""

from __future__ import annotations

import subprocess
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp


def save_and_publish(
    state: dict[str, Any],
    step: int,
    saves: str,
    root: str,
    epoch: int,
    flags: tuple[str, ...] = (),
    program: str = "publish",
) -> None:
    """Call it on every rank. `flags` are further ones of `publish publish`, such as `-creds LIST`."""
    # Not a Path, which would make s3:/ of s3://.
    save = f"{saves}/step-{step}"
    # Returns on rank 0 only after every rank has written and the metadata is in its place.
    dcp.save(state, checkpoint_id=save)
    if not dist.is_initialized() or dist.get_rank() == 0:
        command = [program, "publish", "-checkpoint", root, "-epoch", str(epoch), *flags, save, str(step)]
        # check: an unpublished save is one that a restart would not find; better to stop than to train on.
        subprocess.run(command, check=True)
