"""Files that belong to another user, as this process sees them: only root can really give a file away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def give_to(monkeypatch: pytest.MonkeyPatch, path: Path, user: int) -> None:
    """From now on stat(2) and its kin say that `path` itself belongs to `user`. Of two calls the later one counts."""
    given = os.lstat(path)

    def wrap(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object, **options: object) -> os.stat_result:
            status: os.stat_result = real(*arguments, **options)
            if not os.path.samestat(status, given):
                return status
            fields = list(status)
            fields[4] = user
            return os.stat_result(fields)

        monkeypatch.setattr(os, name, call)

    for name in ("stat", "lstat", "fstat"):
        wrap(name)
