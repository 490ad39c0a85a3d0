"""Two mounts of one NFS export, as two nodes have them, and the server's end of it."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tests.support.program import Result, run

MARKERS = {"hf": "trainer_state.json", "dcp": ".metadata"}


class Node(NamedTuple):
    """A checkpoint root as one node sees it."""

    root: Path

    def resolve(self) -> Result:
        return run("resolve", "-checkpoint", self.root)

    def publish(self, step: int, epoch: int = 1) -> Result:
        return run("publish", "-checkpoint", self.root, "-epoch", str(epoch), self.save(step), str(step))

    def prune(self, keep: int = 1) -> Result:
        return run("prune", "-checkpoint", self.root, "-keep", str(keep))

    def save(self, step: int, attempt: str = "a", framework: str = "hf") -> Path:
        """Where a save is; not made."""
        return self.root / "exec" / attempt / f"{'checkpoint' if framework == 'hf' else 'step'}-{step}"

    def make_save(self, step: int, folders: int = 0) -> Path:
        """A whole save with weights, and several folders in it, each with a file."""
        save = self.save(step)
        (save / "deep").mkdir(parents=True)
        (save / "deep" / "weights").write_bytes(b"w")
        for number in range(folders):
            (save / f"{number:03}").mkdir()
            (save / f"{number:03}" / "x").touch()
        (save / MARKERS["hf"]).write_text(f'{{"global_step": {step}}}')
        return save

    def says(self, step: int) -> Result:
        """What resolve prints for a step."""
        return Result(0, os.fsencode(self.save(step)) + b"\n", b"")


class Mounts(NamedTuple):
    """Two mounts of one export; with caches of their own."""

    a: Path
    b: Path

    def nodes(self) -> tuple[Node, Node]:
        """A fresh root, as both see it; B has seen that it is there."""
        name = f"run-{uuid.uuid4().hex}"
        (self.a / name).mkdir()
        os.listdir(self.b)
        return Node(self.a / name), Node(self.b / name)


def pairs(text: str) -> dict[str, Mounts]:
    """Reads `name=/mount/a:/mount/b,…`."""
    named = (pair.partition("=") for pair in text.split(","))
    return {name: Mounts(*map(Path, paths.split(":"))) for name, _, paths in named}


class Server(NamedTuple):
    """The server, on this machine; `export` is the folder beneath."""

    export: Path

    @contextmanager
    def down(self) -> Iterator[None]:
        """No server while the block runs; afterwards it answers again."""
        command("rpc.nfsd", "0")
        try:
            yield
        finally:
            command("rpc.nfsd", "8")

    @contextmanager
    def mounted(self, folder: Path, options: str, export: Path | None = None) -> Iterator[Path]:
        """A mount of its own."""
        folder.mkdir(exist_ok=True)
        command(
            "mount", "-t", "nfs", "-o", f"nosharecache,{options}", f"localhost:{export or self.export}", str(folder)
        )
        try:
            yield folder
        finally:
            command("umount", "-l", str(folder))

    @contextmanager
    def exported(self, folder: Path, options: str) -> Iterator[Path]:
        """Another export, of a filesystem of its own, since NFSv4 enters a nested one at a mount point only."""
        image = folder.with_suffix(".img")
        with image.open("wb") as file:
            file.truncate(40 << 20)
        folder.mkdir()
        command("mke2fs", "-q", "-t", "ext4", str(image))
        command("mount", "-o", "loop", str(image), str(folder))
        wanted = f"*:{folder}"
        command("exportfs", "-o", f"{options},sync,no_subtree_check,insecure,fsid={1000 + os.getpid()}", wanted)
        try:
            yield folder
        finally:
            command("exportfs", "-u", wanted)
            command("exportfs", "-f")
            command("umount", "-l", str(folder))


def command(*words: str) -> None:
    subprocess.run(words, check=True)


def until(condition: Callable[[], bool], limit: float = 30.0) -> None:
    """Returns when `condition()` holds; fails after `limit` seconds."""
    end = monotonic() + limit
    while not condition():
        assert monotonic() < end
        sleep(0.1)
