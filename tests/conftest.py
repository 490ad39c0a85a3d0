"""Servers and TLS that several folders of tests share: started at first use, stopped at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.ca import CertificateAuthority, MakeTlsTerminator, TlsTerminator
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


@pytest.fixture(scope="session")
def authority() -> CertificateAuthority:
    """A private CA that nothing trusts by itself."""
    return CertificateAuthority()


@pytest.fixture
def tls(authority: CertificateAuthority, tmp_path: Path) -> Iterator[MakeTlsTerminator]:
    """Puts TLS in front of an address; `host` is the name in the certificate."""
    with ExitStack() as fronts:

        def make(
            upstream: str, host: str = "localhost", *, expired: bool = False, signer: CertificateAuthority = authority
        ) -> TlsTerminator:
            front = TlsTerminator(upstream, signer.issue(host, tmp_path, expired=expired))
            fronts.callback(front.stop)
            return front

        yield make
