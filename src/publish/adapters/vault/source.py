"""`vault:URL`: log in, read one secret, end the token. All that it does is said by its location."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from publish.adapters.vault.environment import check_environment
from publish.adapters.vault.redaction import Secrets
from publish.adapters.vault.responses import parse_login, parse_secret
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError
from publish.domain.vault_url import AppRole, Kubernetes, VaultUrl

ReadDirectory = Callable[[bytes, Collection[str]], Mapping[str, str]]
ReadFile = Callable[[bytes, str], str]


class VaultSource:
    """One item of `-creds`. Each exchange takes 10 s to connect and 10 s to answer at most (V4)."""

    def __init__(
        self,
        name: str,
        location: VaultUrl,
        *,
        trust: str,
        environment: Mapping[str, str],
        read_directory: ReadDirectory,
        read_file: ReadFile,
    ) -> None:
        """`trust` is the path of the node's PEM bundle, `environment` holds its VAULT_* variables.

        `read_directory` gives the fields of a private directory, `read_file` a file's one value;
        both raise SourceUnavailable for what is not there.
        """
        self.name = name
        self._location = location
        self._trust = trust
        self._environment = environment
        self._read_directory = read_directory
        self._read_file = read_file

    def read(self, budget: float) -> Credentials:
        """What the secret holds now, within `budget` seconds. Raises SourceUnavailable or CredentialsError."""
        end = time.monotonic() + budget
        check_environment(self._environment)
        material = self._material(self._location.login)
        secrets = Secrets()
        secrets.add(*material.values())

        # Not before it is needed: hvac and requests take a third of a second.
        from publish.adapters.vault.client import Session  # noqa: PLC0415

        session = Session(self._location, self._trust, secrets, lambda: end - time.monotonic())
        token = parse_login(session.login(material))
        secrets.add(token)
        session.use(token)
        try:
            secret = session.read()
        finally:
            # A token that outlives its use is a pity, and no reason to fail (V5).
            with suppress(CredentialsError):
                session.revoke()
        return parse_secret(secret, self._location.kv, secrets)

    def _material(self, login: Kubernetes | AppRole) -> Mapping[str, str]:
        if isinstance(login, Kubernetes):
            return {"jwt": self._read_file(login.token, "service-account token")}
        return self._read_directory(login.directory, ("role_id", "secret_id"))
