"""Sends hvac's requests: within a wall-clock limit, only to the server of the location, without the environment.

A token is sent only to the server that issued it. The libraries' exceptions may hold secrets and never
leave this file.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from time import monotonic
from typing import Any
from urllib.parse import urljoin

import hvac
import requests
from hvac.adapters import RawAdapter
from requests.adapters import HTTPAdapter

from publish.adapters._io import read_regular_file, run_with_limit
from publish.adapters.vault.errors import translate
from publish.adapters.vault.responses import Response, json_body
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
_MAX_BODY = 1024 * 1024
_MAX_CA_FILE = 16 * 1024 * 1024


class VaultClient:
    """A login, a read, and the revocation of the token."""

    def __init__(self, location: VaultUrl, ca_bundle: str, redactor: Redactor, remaining: Callable[[], float]) -> None:
        """`ca_bundle` is the path of the system's PEM bundle; `remaining` returns the seconds left for everything."""
        self._location = location
        self._client = hvac.Client(
            url=str(location.server),
            # hvac replaces None by VAULT_TOKEN, ~/.vault-token and other defaults.
            token="",
            cert=(),
            verify=True,
            namespace=location.namespace and location.namespace.encode(),
            adapter=partial(_Adapter, redactor=redactor, remaining=remaining),
            session=_http_session(location, ca_bundle),
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

    def __init__(self, *, redactor: Redactor, remaining: Callable[[], float], **kwargs: Any) -> None:  # noqa: ANN401  (hvac's)
        super().__init__(**kwargs)
        self._redactor = redactor
        self._remaining = remaining

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
        limit = min(self.max_seconds, self._remaining(), self.end - monotonic())
        if limit <= 0:
            raise SourceUnavailable("cannot reach the server: no time left")

        def send() -> Response | CredentialsError:
            try:
                return self._send(method, url, headers, kwargs, limit)
            except CredentialsError as fault:
                return fault
            except Exception as error:  # noqa: BLE001  (translated here, since it may hold secrets)
                return translate(error)

        try:
            outcome = run_with_limit(send, limit)
        except TimeoutError:
            outcome = SourceUnavailable(f"cannot reach the server: no complete response within {limit:.3g} s")
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
            body = bytearray()
            for chunk in response.iter_content(64 * 1024):
                body += chunk
                if len(body) > _MAX_BODY:
                    raise CredentialsError(f"{self.step}: response larger than {_MAX_BODY // 1024**2} MiB")
        # No request is sent twice, so none may use a connection that the server is about to close.
        self.session.close()
        return Response(response.status_code, response.url, response.headers.get("Location", ""), bytes(body))


class _Transport(HTTPAdapter):
    """requests' transport with one TLS context for servers and another for proxies.

    requests uses the server's CA for the proxy's handshake too, and `ca=` is for the server only.
    """

    def __init__(self, server_context: ssl.SSLContext, proxy_context: ssl.SSLContext) -> None:
        self._server_context = server_context
        self._proxy_context = proxy_context
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:  # noqa: ANN401, FBT001, FBT002  (requests')
        super().init_poolmanager(connections, maxsize, block, **kwargs, ssl_context=self._server_context)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:  # noqa: ANN401  (requests')
        return super().proxy_manager_for(
            proxy, **kwargs, ssl_context=self._server_context, proxy_ssl_context=self._proxy_context
        )

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:  # noqa: ANN401  (requests')
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ANN401, ARG002  (requests')
        conn.cert_reqs = "CERT_REQUIRED"


def _http_session(location: VaultUrl, ca_bundle: str) -> requests.Session:
    """A session that depends on the location alone. Raises CredentialsError for an invalid `ca=`."""
    system_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        system_context.load_verify_locations(cafile=ca_bundle)
    except OSError as error:
        raise CredentialsError(f"cannot read the system's CA bundle: {ca_bundle}") from error
    session = requests.Session()
    session.trust_env = False
    session.headers["User-Agent"] = "publish"
    session.proxies = {"http": location.proxy, "https": location.proxy} if location.proxy else {}
    transport = _Transport(system_context if location.ca is None else _ca_context(location.ca), system_context)
    session.mount("http://", transport)
    session.mount("https://", transport)
    return session


def _ca_context(path: bytes) -> ssl.SSLContext:
    """A context that trusts the certificates of a PEM file and no other, be they roots or intermediates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        # ASCII, because OpenSSL takes nothing else; comments between certificates may. Python refuses an empty text.
        pem = read_regular_file(path, _MAX_CA_FILE).decode("ascii", "ignore") + "\n"
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError as error:
        reason = error.reason or "no certificate in it"
        raise CredentialsError(f"the file of ca= is not a list of PEM certificates: {reason}") from None
    except OSError as error:
        raise CredentialsError(f"cannot read the file of ca=: {error.strerror}") from error
    except ValueError as error:
        raise CredentialsError(f"cannot use the file of ca=: {error}") from None
    return context


def _host_port(origin: Origin) -> tuple[str, str, int]:
    return origin.scheme, origin.host.lower(), origin.port or _DEFAULT_PORTS[origin.scheme]
