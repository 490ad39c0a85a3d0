"""Fixtures of a directory root, of an S3 root on moto, and of a connection to it that a test can disturb."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from publish.adapters.s3 import S3Store
from publish.adapters.vault import VaultSource
from publish.domain.vault_url import parse_vault_url
from tests.support.fault_proxy import FaultProxy
from tests.support.moto_server import Moto
from tests.support.private_files import write_private_directory
from tests.support.s3_roots import Place, make_place, wire_to
from tests.support.secret_sources import (
    KEYS,
    Read,
    private,
    secret,
)
from tests.support.vault_sources import NODES, SECRET_ID


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
def wire(moto: Moto) -> Iterator[FaultProxy]:
    with wire_to(moto) as wire:
        yield wire


@pytest.fixture
def store(place: Place, wire: FaultProxy) -> S3Store:
    return place.store(wire.endpoint)


@pytest.fixture
def nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """cli.9: nor by a thread of its own that fails."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def approle(tmp_path: Path) -> Path:
    return write_private_directory(tmp_path / "approle", {"role_id": "canary-role-id\n", "secret_id": f"{SECRET_ID}\n"})


@pytest.fixture
def source(approle: Path) -> Callable[..., VaultSource]:
    def make(
        server: str, more: str = "", *, trust: str | Path = NODES, environment: Mapping[str, str] | None = None
    ) -> VaultSource:
        location = f"{server}/team/s3?auth=approle&approle={approle}{more}"
        return VaultSource(
            f"vault:{location}",
            parse_vault_url(location),
            ca_bundle=str(trust),
            environment=environment or {},
            timeout=3.0,
        )

    return make


@pytest.fixture(params=[secret, private])
def read(request: pytest.FixtureRequest) -> Read:
    """Both kinds of directory: what is said of files holds for each."""
    chosen: Read = request.param
    return chosen


@pytest.fixture
def top() -> Iterator[Path]:
    """A folder that another user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def directory(top: Path) -> Path:
    return write_private_directory(top / "s3", KEYS)
