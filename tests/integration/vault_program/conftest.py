"""A `vault:` source that finds an S3 server's credentials, and an S3 root."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.openbao import OpenBao
from tests.support.private_files import write_private_directory
from tests.support.s3_roots import Place, make_place
from tests.support.servers import S3Server
from tests.support.vault_jobs import SECRET_ID, Source, make_source


@pytest.fixture
def approle(tmp_path: Path) -> Path:
    return write_private_directory(tmp_path / "approle", {"role_id": "canary-role-id\n", "secret_id": f"{SECRET_ID}\n"})


@pytest.fixture
def source(vault: OpenBao, moto: S3Server, approle: Path) -> Source:
    return make_source(vault, moto, approle)


@pytest.fixture
def place(moto: S3Server) -> Place:
    return make_place(moto)
