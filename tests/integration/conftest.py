"""A Vault server with what it needs around it, shared by the folder's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.ca import CertificateAuthority
from tests.support.openbao import OpenBao
from tests.support.server_mode import start_vault
from tests.support.tokenreview import TokenReview


@pytest.fixture(scope="session")
def authority() -> CertificateAuthority:
    """Signed the certificate of `vault`'s TLS listener; nothing else trusts it."""
    return CertificateAuthority()


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
