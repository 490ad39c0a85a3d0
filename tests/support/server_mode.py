"""How this test run starts its servers, which PUBLISH_TEST_SERVERS says:

- `processes`: SeaweedFS and OpenBao as they come from PyPI, on this machine
- `built`: the same programs in containers, from images that are built of nothing else
- `pulled`: MinIO and Vault, in containers, from their makers' images, which
  PUBLISH_TEST_MINIO_IMAGE and PUBLISH_TEST_VAULT_IMAGE replace by others
- `http://KEY:SECRET@HOST:PORT`: any S3 store that is running already, to see what the contract's
  suite (`-m servers tests/contract`) says of it; OpenBao as a process

Without it they are processes where this machine can run them, and pulled elsewhere.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from tests.support.ca import CertificateAuthority
from tests.support.openbao import OpenBao
from tests.support.servers import Key, KeyedServer, SeaweedFS

MINIO = (
    "quay.io/minio/minio:RELEASE.2025-09-07T16-13-09Z"
    "@sha256:14cea493d9a34af32f524e538b8346cf79f3321eff8e708c1e2960462bd8936e"
)
VAULT = "hashicorp/vault:1.21.4@sha256:4e33b126a59c0c333b76fb4e894722462659a6bec7c48c9ee8cea56fccfd2569"
WEED = Path(sys.executable).with_name("weed")


class NamedStore(NamedTuple):
    """A store that is running already. Each test creates a bucket in it."""

    endpoint: str
    key: Key

    @classmethod
    def of(cls, url: str) -> NamedStore:
        parts = urlsplit(url)
        assert parts.username, "the URL of a store holds its key and secret"
        assert parts.password, "the URL of a store holds its key and secret"
        host = parts.netloc.rpartition("@")[2]
        return cls(f"{parts.scheme}://{host}", Key(unquote(parts.username), unquote(parts.password)))

    def add_key(self) -> Key:
        raise AssertionError("a store that is only named gives no keys")

    def remove_key(self, key: Key) -> None:
        raise AssertionError("a store that is only named takes no keys")

    def stop(self) -> None:
        """It is not ours."""


def way() -> str:
    """`processes`, `built`, `pulled` or a URL."""
    wanted = os.environ.get("PUBLISH_TEST_SERVERS")
    if wanted is None:
        return "processes" if WEED.exists() else "pulled"
    known = wanted in {"processes", "built", "pulled"} or wanted.startswith(("http://", "https://"))
    assert known, f"PUBLISH_TEST_SERVERS is not a way to start servers: {wanted}"
    return wanted


def image(name: str, pinned: str) -> str:
    """The image to pull."""
    return os.environ.get(f"PUBLISH_TEST_{name}_IMAGE", pinned)


def describe() -> str:
    """For pytest's header."""
    words = {
        "processes": "SeaweedFS and OpenBao, as processes",
        "built": "SeaweedFS and OpenBao, in containers built here",
        "pulled": f"{image('MINIO', MINIO)} and {image('VAULT', VAULT)}, in containers",
    }
    return words.get(way()) or f"{NamedStore.of(way()).endpoint}, as it is, and OpenBao, as a process"


def start_store() -> KeyedServer:
    """The S3 store of this run."""
    if way() == "processes":
        return SeaweedFS()
    if "://" in way():
        return NamedStore.of(way())
    from tests.support import container_servers  # noqa: PLC0415  (the engine's client takes a second to import)

    return container_servers.MinIO() if way() == "pulled" else container_servers.ContainedSeaweedFS()


def start_vault(authority: CertificateAuthority | None = None) -> OpenBao:
    """The Vault server of this run."""
    if way() == "processes" or "://" in way():
        return OpenBao(authority)
    from tests.support import container_servers  # noqa: PLC0415  (the same)

    return (
        container_servers.ContainedVault(authority)
        if way() == "pulled"
        else container_servers.ContainedOpenBao(authority)
    )
