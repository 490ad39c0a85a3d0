"""hvac's requests on their way: bounded by the wall clock, to no server but the location's, untouched from outside.

A token goes only to the server that gave it. An exception of a library, which may hold secrets,
never leaves this file.
"""

from __future__ import annotations

import ssl
import threading
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

from publish.adapters.vault.errors import translate
from publish.adapters.vault.pem import certificates, read_regular
from publish.adapters.vault.redaction import Secrets
from publish.adapters.vault.responses import Answer, document
from publish.domain.errors import ConfigError, CredentialsError, SourceUnavailable
from publish.domain.server_url import Origin
from publish.domain.vault_url import Kubernetes, VaultUrl

# Seconds (V4, V5).
CONNECT = 10.0
ANSWER = 10.0
REVOKE = 5.0

_FOLLOWED = frozenset({307, 308})
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Vault's own limit for what is written to it is 32 MiB; five fields fit in this.
_MAX_BODY = 1024 * 1024


class Session:
    """A login, a read, and the end of the token. `left` tells the seconds that remain for all."""

    def __init__(self, location: VaultUrl, trust: str, secrets: Secrets, left: Callable[[], float]) -> None:
        """`trust` is the path of the node's PEM bundle."""
        self._location = location
        wire = partial(_Wire, secrets=secrets, left=left)
        self._client = hvac.Client(
            url=str(location.server),
            # Not None, or hvac looks for them itself, in VAULT_TOKEN and ~/.vault-token among others.
            token="",
            cert=(),
            verify=True,
            namespace=location.namespace and location.namespace.encode(),
            adapter=wire,
            session=_session(location, trust),
            proxies={},
            allow_redirects=False,
            strict_http=True,
        )

    def login(self, material: Mapping[str, str]) -> Mapping[str, Any]:
        """The answer to a login with a service account's `jwt`, or with `role_id` and `secret_id`."""
        login = self._location.login
        self._client.adapter.step = "login"
        if isinstance(login, Kubernetes):
            answer = self._client.auth.kubernetes.login(
                role=login.role, jwt=material["jwt"], use_token=False, mount_point=login.mount
            )
        else:
            answer = self._client.auth.approle.login(**material, use_token=False, mount_point=login.mount)
        return answer  # type: ignore[no-any-return]  # `_Wire.request` made it, hvac passed it on

    def use(self, token: str) -> None:
        """Sends this token from now on."""
        self._client.token = token

    def read(self) -> Mapping[str, Any]:
        """The answer to a read of the secret."""
        self._client.adapter.step = "read"
        path, mount = self._location.path, self._location.mount
        if self._location.kv == 1:
            answer = self._client.secrets.kv.v1.read_secret(path, mount_point=mount)
        else:
            answer = self._client.secrets.kv.v2.read_secret_version(
                path, mount_point=mount, raise_on_deleted_version=True
            )
        return answer  # type: ignore[no-any-return]  # `_Wire.request` made it, hvac passed it on

    def revoke(self) -> None:
        """Ends the token. Raises CredentialsError, which says nothing about the secret."""
        self._client.adapter.step, self._client.adapter.end = "revoke", monotonic() + REVOKE
        self._client.auth.token.revoke_self()


class _Wire(RawAdapter):  # type: ignore[misc]  # hvac is untyped
    """How hvac sends. This alone sees libraries' answers and errors, and gives out JSON objects."""

    base_uri: str
    step = "login"
    # Of seconds, for one exchange from the look-up of the name to the last byte of the answer.
    most = CONNECT + ANSWER
    # When all exchanges must have ended, a moment of `monotonic`, whatever time is left for the source.
    end = inf

    def __init__(self, *, secrets: Secrets, left: Callable[[], float], **given: Any) -> None:  # noqa: ANN401  (hvac's)
        super().__init__(**given)
        self._secrets = secrets
        self._left = left

    def request(
        self,
        method: str,
        url: str,
        headers: dict[str, str] | None = None,
        **given: Any,  # noqa: ANN401  (hvac's)
    ) -> Mapping[str, object]:
        """The JSON object that was answered. Raises SourceUnavailable or CredentialsError."""
        given.pop("raise_exception", None)
        answer = self._exchange(method, url, headers, given)
        # Once: what answers there is taken as it is.
        if answer.status in _FOLLOWED:
            answer = self._exchange(method, self._follow(answer), headers, given)
        return document(answer, self.step, self._secrets)

    def _follow(self, answer: Answer) -> str:
        """The path to ask for instead; from now on all goes to the server that the answer names (V5)."""
        try:
            target, path = Origin.split(urljoin(answer.url, answer.location))
        except (ConfigError, ValueError):
            raise CredentialsError(f"{self.step}: it redirects to what is no server") from None
        here, _ = Origin.split(self.base_uri)
        if here.scheme == "https" and target.scheme != "https":
            raise CredentialsError(f"{self.step}: it redirects from https to http")
        if self.token and _place(here) != _place(target):
            raise CredentialsError(f"{self.step}: it redirects to another server, and the token is not for that one")
        self.base_uri = str(target)
        return path

    def _exchange(self, method: str, url: str, headers: dict[str, str] | None, given: dict[str, Any]) -> Answer:
        """One request and its answer, in a thread of its own: a socket's time-outs never end a drip."""
        limit = min(self.most, self._left(), self.end - monotonic())
        if limit <= 0:
            raise SourceUnavailable("the server cannot be reached: no time was left")
        outcome: list[Answer | CredentialsError] = []
        ended = threading.Event()

        def send() -> None:
            try:
                outcome.append(self._send(method, url, headers, given, limit))
            except CredentialsError as fault:
                outcome.append(fault)
            except Exception as fault:  # noqa: BLE001  (a thread would print it, and what it holds)
                outcome.append(translate(fault))
            ended.set()

        threading.Thread(target=send, daemon=True).start()
        if not ended.wait(limit):
            raise SourceUnavailable(f"the server cannot be reached: there was no whole answer within {limit:.3g} s")
        if isinstance(outcome[0], CredentialsError):
            raise outcome[0]
        return outcome[0]

    def _send(
        self, method: str, url: str, headers: dict[str, str] | None, given: dict[str, Any], limit: float
    ) -> Answer:
        timeout = (min(CONNECT, limit), min(ANSWER, limit))
        response: requests.Response = super().request(
            method, url, headers, raise_exception=False, **{**given, "timeout": timeout, "stream": True}
        )
        with response:
            body = b""
            for part in response.iter_content(64 * 1024):
                body += part
                if len(body) > _MAX_BODY:
                    raise CredentialsError(f"{self.step}: its answer is over {_MAX_BODY // 1024**2} MiB")
        # Nothing is sent twice, so no request may go out on a connection that the other side is just closing.
        self.session.close()
        return Answer(response.status_code, response.url, response.headers.get("Location", ""), body)


class _Transport(HTTPAdapter):
    """requests' transport with one TLS context for servers and another for proxies.

    Its own way hands the server's roots to the proxy's handshake too, and `ca=` is for the server alone (P2).
    """

    def __init__(self, servers: ssl.SSLContext, proxies: ssl.SSLContext) -> None:
        self._servers = servers
        self._proxies = proxies
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **given: Any) -> None:  # noqa: ANN401, FBT001, FBT002  (requests')
        super().init_poolmanager(connections, maxsize, block, **given, ssl_context=self._servers)

    def proxy_manager_for(self, proxy: str, **given: Any) -> Any:  # noqa: ANN401  (requests')
        return super().proxy_manager_for(proxy, **given, ssl_context=self._servers, proxy_ssl_context=self._proxies)

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:  # noqa: ANN401  (requests')
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ANN401, ARG002  (requests')
        conn.cert_reqs = "CERT_REQUIRED"


def _session(location: VaultUrl, trust: str) -> requests.Session:
    """A session that nothing outside the location changes. Raises CredentialsError for a bad `ca=`."""
    nodes = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        nodes.load_verify_locations(cafile=trust)
    except OSError as fault:
        raise CredentialsError(f"the node's own TLS roots cannot be read: {trust}") from fault
    session = requests.Session()
    session.trust_env = False
    session.headers["User-Agent"] = "publish"
    session.proxies = {"http": location.proxy, "https": location.proxy} if location.proxy else {}
    transport = _Transport(nodes if location.ca is None else _pinned(location.ca), nodes)
    session.mount("http://", transport)
    session.mount("https://", transport)
    return session


def _pinned(ca: bytes) -> ssl.SSLContext:
    """A context that trusts what is in this file and nothing else, an intermediate's certificate too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=b"".join(certificates(read_regular(ca))))
    except OSError as fault:
        raise CredentialsError(f"the file of ca= cannot be read: {fault.strerror}") from fault
    except ValueError as fault:
        raise CredentialsError(f"the file of ca= is bad: {fault}") from None
    return context


def _place(origin: Origin) -> tuple[str, str, int]:
    return origin.scheme, origin.host.lower(), origin.port or _DEFAULT_PORTS[origin.scheme]
