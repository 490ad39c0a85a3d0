"""A save as the sequence of file operations that made it, which can be replayed one by one.

A recording is a gzipped file with one JSON array a line: the operation, its path (relative to the
folder of the saves), and what it takes. Data are base64. `place` renames a file to its place that was
written elsewhere on the same filesystem.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
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
    path = saves / name
    match kind:
        case "mkdir":
            path.mkdir()
        case "create":
            path.write_bytes(b"")
        case "write":
            offset, data = rest
            with path.open("r+b") as file:
                file.seek(offset)
                file.write(base64.b64decode(data))
        case "truncate":
            with path.open("r+b") as file:
                file.truncate(rest[0])
        case "rename":
            path.rename(saves / rest[0])
        case "unlink":
            path.unlink()
        case "rmdir":
            path.rmdir()
        case "symlink":
            path.symlink_to(rest[0])
        case "link":
            path.hardlink_to(saves / rest[0])
        case "place":
            elsewhere = saves.parent / "elsewhere"
            elsewhere.write_bytes(base64.b64decode(rest[0]))
            elsewhere.rename(path)
        case _:
            raise AssertionError(f"not an operation: {operation}")


def replay(operations: list[Operation], saves: Path) -> Iterator[Operation]:
    """Does one operation after the other, and yields after each."""
    for operation in operations:
        apply(operation, saves)
        yield operation
