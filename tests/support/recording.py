"""A save as the sequence of file operations that made it, which can be replayed one by one.

A recording is a gzipped file with one JSON array a line: the operation, its path (relative to the
folder of the saves), and what it takes. Data are base64. `place` renames a file to its place that was
written elsewhere on the same filesystem.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Operation = list[Any]


def load(file: Path) -> list[Operation]:
    with gzip.open(file, "rt") as lines:
        return [json.loads(line) for line in lines]


def store(file: Path, operations: list[Operation]) -> None:
    """The same operations give the same bytes, so that a recording made anew shows as a change only if it is one."""
    text = "".join(json.dumps(operation, separators=(",", ":")) + "\n" for operation in operations)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def apply(operation: Operation, saves: Path) -> None:
    """Does to the folder `saves` what the framework did."""
    kind, name, *rest = operation
    _ACTIONS[kind](saves / name, saves, *rest)


def _create(path: Path, _saves: Path) -> None:
    path.write_bytes(b"")


def _write(path: Path, _saves: Path, offset: int, data: str) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(base64.b64decode(data))


def _truncate(path: Path, _saves: Path, size: int) -> None:
    os.truncate(path, size)


def _place(path: Path, saves: Path, data: str) -> None:
    elsewhere = saves.parent / "elsewhere"
    elsewhere.write_bytes(base64.b64decode(data))
    elsewhere.rename(path)


_ACTIONS: dict[str, Callable[..., object]] = {
    "mkdir": lambda path, _: path.mkdir(),
    "create": _create,
    "write": _write,
    "truncate": _truncate,
    "rename": lambda path, saves, new: path.rename(saves / new),
    "unlink": lambda path, _: path.unlink(),
    "rmdir": lambda path, _: path.rmdir(),
    "symlink": lambda path, _, target: path.symlink_to(target),
    "link": lambda path, saves, old: path.hardlink_to(saves / old),
    "place": _place,
}


def replay(operations: list[Operation], saves: Path) -> Iterator[Operation]:
    """Does one operation after the other, and yields after each."""
    for operation in operations:
        apply(operation, saves)
        yield operation
