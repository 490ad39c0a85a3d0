"""Roots of every kind behind one interface, so that one suite holds all stores to the contract.

A FreshRoot can write and list files without the store under test. A new kind of store is a
class with these methods and one line in FRESH_ROOTS.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from publish.adapters.posix import PosixStore
from publish.domain.ports import Store
from tests.support.fakes import FakeStore
from tests.support.s3_roots import Place, make_place


class FreshRoot(Protocol):
    """One fresh root."""

    def store(self) -> Store:
        """A new store on this root, as another process would open it."""

    def fill(self, *paths: str, body: bytes = b"x") -> None:
        """Writes files without the store under test."""

    def paths(self) -> list[str]:
        """All files below the root, entries included."""


class FakeFreshRoot:
    def __init__(self) -> None:
        self._store = FakeStore(page_size=100)

    def store(self) -> Store:
        return self._store

    def fill(self, *paths: str, body: bytes = b"x") -> None:
        for path in paths:
            for namespace, names in self._store.names.items():
                if path.startswith(f"{namespace.value.decode()}/"):
                    names.add(path.encode().split(b"/", 1)[1])
                    break
            else:
                self._store.files[path.encode()] = body

    def paths(self) -> list[str]:
        entries = [space.value + b"/" + name for space, names in self._store.names.items() for name in names]
        return sorted(path.decode() for path in (*entries, *self._store.files))


class PosixFreshRoot:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def store(self) -> Store:
        return PosixStore(bytes(self.folder))

    def fill(self, *paths: str, body: bytes = b"x") -> None:
        for path in paths:
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)

    def paths(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if not path.is_dir())


class S3FreshRoot(NamedTuple):
    place: Place

    def store(self) -> Store:
        return self.place.store()

    def fill(self, *paths: str, body: bytes = b"x") -> None:
        self.place.fill(*paths, body=body)

    def paths(self) -> list[str]:
        return sorted(self.place.paths())


FRESH_ROOTS: dict[str, Callable[[pytest.FixtureRequest], FreshRoot]] = {
    "fake": lambda _: FakeFreshRoot(),
    "posix": lambda request: PosixFreshRoot(request.getfixturevalue("tmp_path_factory").mktemp("root")),
    "s3-moto": lambda request: S3FreshRoot(make_place(request.getfixturevalue("moto"))),
    "s3-seaweedfs": lambda request: S3FreshRoot(make_place(request.getfixturevalue("seaweedfs"))),
}
