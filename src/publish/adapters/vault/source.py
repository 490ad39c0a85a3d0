"""The credential source `vault:URL`: log in, read one secret, revoke the token."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from publish.adapters.secret_files import read_private_directory, read_secret_file
from publish.adapters.vault.environment import check_environment
from publish.adapters.vault.responses import parse_login, parse_secret
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError
from publish.domain.redaction import Redactor
from publish.domain.vault_url import AppRoleAuth, KubernetesAuth, VaultUrl


class VaultSource:
    """One item of `-creds`. A request takes at most 10 s to connect and 10 s for the response."""

    def __init__(
        self, name: str, location: VaultUrl, *, ca_bundle: str, environment: Mapping[str, str], timeout: float
    ) -> None:
        """`ca_bundle` is the path of the system's PEM bundle, `environment` holds the VAULT_* variables.

        `timeout` is what `-timeout` says, in seconds, for messages.
        """
        self.name = name
        self._location = location
        self._ca_bundle = ca_bundle
        self._environment = environment
        self._timeout = timeout

    def read(self, budget: float) -> Credentials:
        """The secret's credentials, within `budget` seconds. Raises SourceUnavailable or CredentialsError."""
        deadline = time.monotonic() + budget
        check_environment(self._environment)
        login_payload = _read_login_payload(self._location.login)
        redactor = Redactor()
        redactor.add(login_payload.values())

        # hvac and requests take a third of a second to import.
        from publish.adapters.vault.client import VaultClient  # noqa: PLC0415

        client = VaultClient(
            self._location, self._ca_bundle, redactor, lambda: deadline - time.monotonic(), self._timeout
        )
        token = parse_login(client.login(login_payload))
        redactor.add([token])
        client.set_token(token)
        try:
            secret = client.read()
        finally:
            # Best effort: a failed revocation must not fail the run.
            with suppress(CredentialsError):
                client.revoke()
        return parse_secret(secret, self._location.kv, redactor)


def _read_login_payload(login: KubernetesAuth | AppRoleAuth) -> Mapping[str, str]:
    if isinstance(login, KubernetesAuth):
        return {"jwt": read_secret_file(login.token, "service-account token")}
    return read_private_directory(login.directory, ("role_id", "secret_id"))
