"""What lies below the roots of the power tests: whole Trainer saves and a log, as trees, in memory and on a disk."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from tests.support.strict_model import Content, Tree

SAVES = b"exec/a"
MARKER = b"trainer_state.json"
_FILES = {MARKER: b'{"global_step": %d}', b"weights": b"w%d", b"deep/optimizer": b"o%d"}


def save(step: int) -> bytes:
    """The path of a step's save below the root."""
    return SAVES + b"/checkpoint-%d" % step


def save_files(step: int) -> Tree:
    """A Trainer save, whole, by paths below the root."""
    return {save(step) + b"/" + name: content % step for name, content in _FILES.items()}


def entry(step: int, epoch: int = 1) -> bytes:
    """A publication's name (layout.1)."""
    return b"%020d-%020d-" % (epoch, step) + base64.b32encode(save(step)).rstrip(b"=")


def entry_path(name: bytes) -> bytes:
    """The path of the save that an entry names."""
    text = name.split(b"-")[2]
    return base64.b32decode(text + b"=" * (-len(text) % 8))


def published(*steps: int) -> Tree:
    """The log with these steps in it."""
    return {b"pub/" + entry(step): b"" for step in steps}


def below(tree: Tree, folder: bytes) -> list[bytes]:
    """The names of the files directly in a folder of a tree."""
    files = (path.rpartition(b"/") for path, content in tree.items() if content is not None)
    return [name for above, _, name in files if above == folder]


def put(tree: Tree, root: bytes) -> None:
    """Makes what `tree` holds, and the folders above, in a folder that is made where it is not there."""
    os.makedirs(root, exist_ok=True)
    for path, content in tree.items():
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if content is None:
            os.makedirs(target, exist_ok=True)
        elif isinstance(content, str):
            os.symlink(content, target)
        else:
            with open(target, "wb") as file:
                file.write(content)


def tree_at(root: bytes) -> Tree:
    """What a folder holds. Links are left out."""
    tree: dict[bytes, Content] = {}
    for above, folders, files in os.walk(root):
        inside = above[len(root) + 1 :] + b"/" if above != root else b""
        tree.update((inside + name, None) for name in folders)
        tree.update((inside + name, Path(os.fsdecode(above), os.fsdecode(name)).read_bytes()) for name in files)
    return tree
