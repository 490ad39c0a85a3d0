"""requests' session for Vault: TLS contexts, a proxy, a time limit, and sockets that another thread can shut down."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from publish.adapters._io import read_regular_file
from publish.domain.errors import CredentialsError
from publish.domain.vault_url import VaultUrl

_MAX_CA_FILE = 16 * 1024 * 1024

T = TypeVar("T")


def run_with_limit(work: Callable[[], T], seconds: float) -> T:
    """What `work` returns or raises. Raises TimeoutError after `seconds`; `work` then goes on in its thread.

    A socket's timeout is per read, so it never ends a slow drip, and a name lookup has none.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
            outcome.set_exception(error)

    threading.Thread(target=run, name="request", daemon=True).start()
    return outcome.result(seconds)


class Sockets:
    """The connections of one request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._closed = False

    def add(self, connection: socket.socket) -> None:
        """Also shuts down this connection when `close` is called, or at once if it was."""
        # A duplicate, because TLS takes the descriptor away from the socket object.
        duplicate = connection.dup()
        with self._lock:
            if not self._closed:
                self._sockets.append(duplicate)
                return
        _shut_down(duplicate)

    def close(self) -> None:
        """Ends every read and write on the connections, in whichever thread."""
        with self._lock:
            self._closed = True
            sockets, self._sockets = self._sockets, []
        for connection in sockets:
            _shut_down(connection)


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class Transport(HTTPAdapter):
    """requests' transport with one TLS context for servers and another for proxies.

    requests uses the server's CA for the proxy's handshake too, and `ca=` is for the server only.
    """

    def __init__(self, server_context: ssl.SSLContext, proxy_context: ssl.SSLContext) -> None:
        self._server_context = server_context
        self._proxy_context = proxy_context
        self._local = threading.local()
        super().__init__()

    def track(self, sockets: Sockets) -> None:
        """Adds the connections that this thread makes to `sockets` from now on."""
        self._local.sockets = sockets

    def _connected(self, connection: socket.socket) -> None:
        self._local.sockets.add(connection)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:  # noqa: ANN401, FBT001, FBT002  (requests')
        """The pools of direct connections."""
        super().init_poolmanager(connections, maxsize, block, **kwargs, ssl_context=self._server_context)
        _use_tracked_connections(self.poolmanager, self._connected)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:  # noqa: ANN401  (requests')
        """The pools of connections through a proxy."""
        manager = super().proxy_manager_for(
            proxy, **kwargs, ssl_context=self._server_context, proxy_ssl_context=self._proxy_context
        )
        _use_tracked_connections(manager, self._connected)
        return manager

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:  # noqa: ANN401  (requests')
        """Without TLS settings: the contexts hold them."""
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ANN401, ARG002  (requests')
        """Certificates are always verified, with the contexts."""
        conn.cert_reqs = "CERT_REQUIRED"


def _use_tracked_connections(manager: PoolManager, connected: Callable[[socket.socket], None]) -> None:
    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            connection = super()._new_conn()
            connected(connection)
            return connection

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            connection = super()._new_conn()
            connected(connection)
            return connection

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    manager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}


def http_session(location: VaultUrl, ca_bundle: str) -> tuple[requests.Session, Transport]:
    """A session that depends on the location alone. Raises CredentialsError for an invalid `ca=`."""
    system_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        system_context.load_verify_locations(cafile=ca_bundle)
    except OSError as error:
        raise CredentialsError(f"cannot read the system's CA bundle: {ca_bundle}") from error
    session = requests.Session()
    session.trust_env = False
    session.headers["User-Agent"] = "publish"
    session.headers["Accept-Encoding"] = "identity"
    session.proxies = {"http": location.proxy, "https": location.proxy} if location.proxy else {}
    transport = Transport(system_context if location.ca is None else _ca_context(location.ca), system_context)
    session.mount("http://", transport)
    session.mount("https://", transport)
    return session, transport


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
