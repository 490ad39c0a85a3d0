"""Servers that several folders of tests share: started at first use, stopped at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.moto_server import Moto
from tests.support.server_mode import start_store
from tests.support.servers import KeyedServer, S3Server


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[KeyedServer]:
    """SeaweedFS, or the store that PUBLISH_TEST_SERVERS puts in its place."""
    server = start_store()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def moto() -> Iterator[Moto]:
    server = Moto()
    yield server
    server.stop()


@pytest.fixture(params=["moto", "seaweedfs"])
def s3_server(request: pytest.FixtureRequest) -> S3Server:
    """Each of the S3 servers in turn."""
    server: S3Server = request.getfixturevalue(request.param)
    return server
