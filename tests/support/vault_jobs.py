"""The installed program with a `vault:` source: who may change the secret, and how it is read."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import NamedTuple

from tests.support.openbao import Admin, OpenBao
from tests.support.program import Result, run
from tests.support.s3_roots import Place
from tests.support.servers import Key, S3Server

SECRET_ID = "canary-secret-id"


class Source(NamedTuple):
    """A `vault:` source that finds an S3 server's credentials, and who may change them."""

    admin: Admin
    secret: str
    login: str
    store: S3Server

    def at(self, address: str, more: str = "") -> str:
        return f"vault:{address}/{self.secret}?{self.login}{more}"

    def hold(self, key: Key) -> None:
        """From now on the secret has this key."""
        self.admin.write(self.secret, {**key._asdict(), "endpoint": self.store.endpoint})


def make_source(vault: OpenBao, store: S3Server, approle: Path) -> Source:
    """A role of its own, whose directory is `approle`."""
    admin = Admin(vault)
    secret = f"team/{secrets.token_hex(6)}"
    for name, value in admin.approle(admin.allow_reading(f"secret/data/{secret}"))._asdict().items():
        (approle / name).write_text(value)
    source = Source(admin, secret, f"auth=approle&approle={approle}", store)
    source.hold(store.key)
    return source


def resolve(place: Place, creds: str, *words: str, env: dict[str, str] | None = None) -> Result:
    return run("resolve", "-checkpoint", place.url, "-creds", creds, *words, env=env)
