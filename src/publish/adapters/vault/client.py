"""Sends hvac's requests: within a wall-clock limit, only to the server of the location, without the environment.

A token is sent only to the server that issued it. The libraries' exceptions may hold secrets and never
leave this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from time import monotonic
from typing import Any
from urllib.parse import urljoin

import hvac
import requests
from hvac.adapters import RawAdapter

from publish.adapters.vault.errors import Timing, translate
from publish.adapters.vault.responses import Response, json_body
from publish.adapters.vault.transport import Sockets, Transport, http_session, run_with_limit
from publish.domain.errors import ConfigError, CredentialsError, SourceUnavailable
from publish.domain.redaction import Redactor
from publish.domain.server_url import Origin
from publish.domain.vault_url import KubernetesAuth, VaultUrl

# Seconds.
CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 10.0
REVOKE_TIMEOUT = 5.0

_FOLLOWED = frozenset({307, 308})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_OK = 200
# Bytes. An entry of Vault's integrated storage has at most 1 MiB (max_entry_size).
_MAX_BODY = 1024 * 1024
_MAX_ERROR = 64 * 1024
_CHUNK_SIZE = 64 * 1024


class VaultClient:
    """A login, a read, and the revocation of the token."""

    def __init__(
        self, location: VaultUrl, ca_bundle: str, redactor: Redactor, remaining: Callable[[], float], timeout: float
    ) -> None:
        """`ca_bundle` is the path of the system's PEM bundle; `remaining` returns the seconds left for everything.

        `timeout` is what `-timeout` says, in seconds, for messages.
        """
        self._location = location
        session, transport = http_session(location, ca_bundle)
        self._client = hvac.Client(
            url=str(location.server),
            # hvac replaces None by VAULT_TOKEN, ~/.vault-token and other defaults.
            token="",
            cert=(),
            verify=True,
            namespace=location.namespace and location.namespace.encode(),
            adapter=partial(
                _Adapter, redactor=redactor, remaining=remaining, limit_as_set=timeout, transport=transport
            ),
            session=session,
            proxies={},
            allow_redirects=False,
            strict_http=True,
        )

    def login(self, payload: Mapping[str, str]) -> Mapping[str, Any]:
        """Logs in with a service account's `jwt`, or with `role_id` and `secret_id`."""
        login = self._location.login
        self._client.adapter.step = "login"
        if isinstance(login, KubernetesAuth):
            body = self._client.auth.kubernetes.login(
                role=login.role, jwt=payload["jwt"], use_token=False, mount_point=login.mount
            )
        else:
            body = self._client.auth.approle.login(**payload, use_token=False, mount_point=login.mount)
        return body  # type: ignore[no-any-return]  # hvac passes on what `_Adapter.request` returned

    def set_token(self, token: str) -> None:
        """Sends this token from now on."""
        self._client.token = token

    def read(self) -> Mapping[str, Any]:
        """Reads the secret."""
        self._client.adapter.step = "read"
        path, mount = self._location.path, self._location.mount
        if self._location.kv == 1:
            body = self._client.secrets.kv.v1.read_secret(path, mount_point=mount)
        else:
            body = self._client.secrets.kv.v2.read_secret_version(
                path, mount_point=mount, raise_on_deleted_version=True
            )
        return body  # type: ignore[no-any-return]  # hvac passes on what `_Adapter.request` returned

    def revoke(self) -> None:
        """Revokes the token. Raises CredentialsError."""
        self._client.adapter.step, self._client.adapter.end = "revoke", monotonic() + REVOKE_TIMEOUT
        self._client.auth.token.revoke_self()


class _Adapter(RawAdapter):  # type: ignore[misc]  # hvac is untyped
    """hvac's transport. Returns JSON objects; libraries' responses and exceptions stay inside."""

    base_uri: str
    step = "login"
    # Seconds for one request, from the name lookup to the last byte of the response.
    max_seconds = CONNECT_TIMEOUT + READ_TIMEOUT
    # A moment of `monotonic` that ends all requests.
    end = inf

    def __init__(
        self,
        *,
        redactor: Redactor,
        remaining: Callable[[], float],
        limit_as_set: float,
        transport: Transport,
        **kwargs: Any,  # noqa: ANN401  (hvac's)
    ) -> None:
        super().__init__(**kwargs)
        self._redactor = redactor
        self._remaining = remaining
        self._limit_as_set = limit_as_set
        self._transport = transport

    def request(
        self,
        method: str,
        url: str,
        headers: dict[str, str] | None = None,
        **kwargs: Any,  # noqa: ANN401  (hvac's)
    ) -> Mapping[str, object]:
        """The JSON object of the response. Raises SourceUnavailable or CredentialsError."""
        kwargs.pop("raise_exception", None)
        response = self._exchange(method, url, headers, kwargs)
        # Once: the response to the second request is final.
        if response.status in _FOLLOWED:
            response = self._exchange(method, self._follow(response), headers, kwargs)
        return json_body(response, self.step, self._redactor)

    def _follow(self, response: Response) -> str:
        """The path of the redirect. Later requests go to the server that it names."""
        try:
            target, path = Origin.split(urljoin(response.url, response.location))
        except (ConfigError, ValueError):
            raise CredentialsError(f"{self.step}: redirect to an invalid URL") from None
        here, _ = Origin.split(self.base_uri)
        if here.scheme == "https" and target.scheme != "https":
            raise CredentialsError(f"{self.step}: refusing a redirect from https to http")
        if self.token and _host_port(here) != _host_port(target):
            raise CredentialsError(f"{self.step}: refusing to send the token to another server (redirect)")
        self.base_uri = str(target)
        return path

    def _exchange(self, method: str, url: str, headers: dict[str, str] | None, kwargs: dict[str, Any]) -> Response:
        budget = self._remaining()
        limit = min(self.max_seconds, budget, self.end - monotonic())
        if limit <= 0:
            raise SourceUnavailable(
                f"cannot reach the server: {self.step}: no time left of -timeout {self._limit_as_set:g}s"
            )

        def within(usual: float) -> str:
            share = f" (its share of -timeout {self._limit_as_set:g}s)" if budget <= min(usual, limit) else ""
            return f"{min(usual, limit):.3g}s{share}"

        sockets = Sockets()

        def send() -> Response | CredentialsError:
            self._transport.track(sockets)
            try:
                return self._send(method, url, headers, kwargs, limit)
            except CredentialsError as fault:
                return fault
            except Exception as error:  # noqa: BLE001  (translated here, since it may hold secrets)
                return translate(error, Timing(self.step, within(CONNECT_TIMEOUT), within(READ_TIMEOUT)))

        try:
            outcome = run_with_limit(send, limit)
        except TimeoutError:
            outcome = SourceUnavailable(
                f"cannot reach the server: {self.step}: no complete response within {within(limit)}"
            )
        finally:
            # If it timed out, this ends the thread, which would otherwise read on for as long as the server likes.
            sockets.close()
        if isinstance(outcome, CredentialsError):
            raise outcome
        return outcome

    def _send(
        self, method: str, url: str, headers: dict[str, str] | None, kwargs: dict[str, Any], limit: float
    ) -> Response:
        timeout = (min(CONNECT_TIMEOUT, limit), min(READ_TIMEOUT, limit))
        response: requests.Response = super().request(
            method, url, headers, raise_exception=False, **{**kwargs, "timeout": timeout, "stream": True}
        )
        with response:
            body = self._read_body(response)
        # No request is sent twice, so none may use a connection that the server is about to close.
        self.session.close()
        return Response(response.status_code, response.url, response.headers.get("Location", ""), body)

    def _read_body(self, response: requests.Response) -> bytes:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise CredentialsError(f"{self.step}: the response is compressed: {self._redactor.redact(encoding, 64)}")
        limit = _MAX_BODY if response.status_code == _OK else _MAX_ERROR
        body = bytearray()
        for chunk in response.raw.stream(_CHUNK_SIZE, decode_content=False):
            body += chunk
            if len(body) > limit:
                raise CredentialsError(f"{self.step}: response larger than {limit // 1024} KiB")
        return bytes(body)


def _host_port(origin: Origin) -> tuple[str, str, int]:
    return origin.scheme, origin.host.lower(), origin.port or _DEFAULT_PORTS[origin.scheme]
