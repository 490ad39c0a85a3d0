"""A Vault server, a proxy, and a job on an S3 root, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ca import CertificateAuthority
from tests.support.openbao import OpenBao
from tests.support.proxies import TinyProxy
from tests.support.s3_jobs import S3Job, s3_job
from tests.support.server_mode import start_vault
from tests.support.servers import KeyedServer
from tests.support.tokenreview import TokenReview


@pytest.fixture(scope="session")
def vault(authority: CertificateAuthority) -> Iterator[OpenBao]:
    """OpenBao, or what PUBLISH_TEST_SERVERS puts in its place."""
    server = start_vault(authority)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def reviews(vault: OpenBao) -> Iterator[TokenReview]:
    server = TokenReview(vault.peer)
    yield server
    server.stop()


@pytest.fixture
def tinyproxy() -> Iterator[TinyProxy]:
    proxy = TinyProxy()
    yield proxy
    proxy.stop()


@pytest.fixture
def job(seaweedfs: KeyedServer, tmp_path: Path) -> Iterator[S3Job]:
    with s3_job(seaweedfs, tmp_path) as job:
        yield job
