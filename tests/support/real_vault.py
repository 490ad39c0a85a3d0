"""What the tests of a real Vault server share: a secret, its credentials, and how a location is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from publish.adapters.ca_bundle import system_ca_bundle
from publish.adapters.vault import VaultSource
from publish.domain.credentials import Credentials
from publish.domain.vault_url import parse_vault_url
from tests.support.vault_sources import PLENTY, invalid, unavailable

FIELDS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "canary-secret-key", "region": "eu-west-1"}
CREDENTIALS = Credentials("AKIDEXAMPLE", "canary-secret-key", None, None, "eu-west-1")

Login = Callable[..., str]


class Secret(NamedTuple):
    """A secret's path, and a policy that lets one read it."""

    path: str
    policy: str


def read(location: str, trust: str | Path | None = None) -> Credentials:
    source = VaultSource(
        f"vault:{location}",
        parse_vault_url(location),
        ca_bundle=str(trust or system_ca_bundle()),
        environment={},
        timeout=60,
    )
    return source.read(PLENTY)


def invalid_at(location: str, trust: str | Path | None = None) -> str:
    """The message of a source that is invalid."""
    return invalid(lambda: read(location, trust))


def unavailable_at(location: str, trust: str | Path | None = None) -> str:
    """The message of a source that is unavailable."""
    return unavailable(lambda: read(location, trust))
