"""Stores of the adapter's own on S3 servers, each in a prefix of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as Signer

from publish.adapters.s3 import ConnectionSettings, S3Store
from publish.domain.root import S3Root
from tests.support.fault_proxy import Asked, FaultProxy
from tests.support.private_files import write_private_directory
from tests.support.servers import Key, S3Server, behind, credentials, shared_bucket

# Any PEM bundle; a test that looks at trust makes its own.
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_WRITERS = 8


class Place(NamedTuple):
    """A root on a server, and what to look at it with, without the adapter."""

    server: S3Server
    root: S3Root

    @property
    def url(self) -> str:
        return f"s3://{self.root.bucket}/{self.root.prefix}"

    def fill(self, *paths: str, body: bytes = b"x") -> None:
        """Puts objects. By hand, since a client takes ten times as long and tests put thousands."""
        keys = [f"{self.root.prefix}/{path}" for path in paths]
        with ThreadPoolExecutor(_WRITERS) as pool:
            for _ in pool.map(lambda some: self._put(some, body), (keys[start::_WRITERS] for start in range(_WRITERS))):
                pass

    def _put(self, keys: list[str], body: bytes) -> None:
        parts = urlsplit(self.server.endpoint)
        assert parts.hostname
        with closing(HTTPConnection(parts.hostname, parts.port, timeout=60)) as connection:
            for key in keys:
                url = f"{self.server.endpoint}/{self.root.bucket}/{quote(key, safe='/-_.~')}"
                request = AWSRequest("PUT", url, data=body, headers={"host": parts.netloc})
                _signer(self.server.key).add_auth(request)
                connection.request("PUT", urlsplit(url).path, body, dict(request.headers.items()))
                with connection.getresponse() as answer:
                    said = answer.read()
                    assert answer.status == HTTPStatus.OK, said

    def paths(self) -> list[str]:
        """All keys below the root, relative to it."""
        base = self.root.prefix + "/"
        pages = behind(self.server).get_paginator("list_objects_v2").paginate(Bucket=self.root.bucket, Prefix=base)
        return [one["Key"].removeprefix(base) for page in pages for one in page.get("Contents", [])]

    def store(
        self, endpoint: str | None = None, key: Key | None = None, settings: ConnectionSettings | None = None
    ) -> S3Store:
        return S3Store(
            self.root, credentials(self.server, key, endpoint), settings or ConnectionSettings(None, BUNDLE, 20.0)
        )


def make_place(server: S3Server) -> Place:
    """A fresh root."""
    return Place(server, S3Root(shared_bucket(server), f"team/run-{secrets.token_hex(6)}"))


def _signer(key: Key) -> S3SigV4Auth:
    return S3SigV4Auth(Signer(key.access_key_id, key.secret_access_key), "s3", "us-east-1")


def resigning(key: Key) -> Callable[[Asked], Asked]:
    """Signs a request that a wire has changed once more, for a server that looks at signatures."""

    def resign(asked: Asked) -> Asked:
        kept = [(name, value) for name, value in asked.headers if name.lower() != "authorization"]
        url = f"http://{asked.header('host')}{asked.target}"
        request = AWSRequest(asked.method, url, headers=dict(kept), data=asked.body)
        _signer(key).add_auth(request)
        return asked._replace(headers=list(request.headers.items()))

    return resign


def wire_to(server: S3Server) -> FaultProxy:
    return FaultProxy(server.endpoint, resigning(server.key))


def paths_of(wire: FaultProxy) -> list[str]:
    return [f"{asked.method} {urlsplit(asked.target).path}" for asked in wire.asked]


def private_directory(folder: Path, server: S3Server, endpoint: str | None = None, key: Key | None = None) -> str:
    """A `file:` source for a server, or for what stands before it."""
    fields = {"endpoint": endpoint or server.endpoint, **(key or server.key)._asdict()}
    return f"file:{write_private_directory(folder, fields)}"
