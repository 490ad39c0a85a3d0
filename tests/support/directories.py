"""Directory roots for tests of the POSIX adapter."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from publish.adapters.posix import PosixStore


def open_store(
    root: Path, warn: Callable[[str], None] = lambda _line: None, *, outlives_faults: bool = False
) -> PosixStore:
    return PosixStore(bytes(root), warn, outlives_faults=outlives_faults)


def fill(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def failing(
    monkeypatch: pytest.MonkeyPatch, call: str, code: int, applies: Callable[..., bool] = lambda *_, **__: True
) -> list[object]:
    """Makes `os.<call>` fail with an errno where `applies` says so of its arguments; returns what failed."""
    real = getattr(os, call)
    failed: list[object] = []

    def refuse(*arguments: object, **options: object) -> object:
        if applies(*arguments, **options):
            failed.append(arguments)
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, refuse)
    return failed


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[list[str]]:
    """Notes the system's calls with the names that they are about; a root's own is "."."""
    calls: list[str] = []
    paths: dict[int, str] = {}

    def wrap(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object, **options: object) -> object:
            result = real(*arguments, **options)
            about = arguments[0]
            named = paths[about] if isinstance(about, int) else os.path.basename(os.fsdecode(cast("bytes", about)))
            if name == "open":
                paths[result] = named
            calls.append(f"{name} {named}")
            return result

        monkeypatch.setattr(os, name, call)

    with monkeypatch.context():
        for name in ("open", *names):
            wrap(name)
        yield calls
        monkeypatch.undo()
