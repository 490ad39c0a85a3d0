"""Fixtures of a directory root, of an S3 root on moto, and of a connection to it that a test can disturb."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from publish.adapters.s3 import S3Store
from tests.support.fault_proxy import Wire
from tests.support.moto_server import Moto
from tests.support.s3_roots import Place, make_place, wire_to


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty directory root."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def place(moto: Moto) -> Place:
    return make_place(moto)


@pytest.fixture
def wire(moto: Moto) -> Iterator[Wire]:
    with wire_to(moto) as wire:
        yield wire


@pytest.fixture
def store(place: Place, wire: Wire) -> S3Store:
    return place.store(wire.endpoint)
