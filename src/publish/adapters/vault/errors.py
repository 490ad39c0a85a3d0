"""Translates a failed request: is the source unavailable on this node (try the next one) or invalid (stop).

The libraries' exceptions hold the request, and with it secrets. No error made here refers to one.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from typing import NamedTuple

import requests
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProtocolError, ProxyError

from publish.adapters._io import causes
from publish.domain.errors import CredentialsError, SourceUnavailable

# http.client's message for a CONNECT that was answered with another status than 200.
_TUNNEL = re.compile(r"Tunnel connection failed: ([0-9]{3})\b")


class Timing(NamedTuple):
    """For messages: what was asked for, and the times that connecting and answering had."""

    step: str
    connect: str
    read: str


def translate(error: Exception, timing: Timing) -> CredentialsError:
    """SourceUnavailable or CredentialsError for any exception that a request raised."""
    chain = list(causes(error))
    peer = "the proxy" if any(isinstance(cause, ProxyError) for cause in chain) else "the server"
    for kind, describe in _TABLE:
        for cause in chain:
            if isinstance(cause, kind):
                return describe(cause, peer, timing)
    return CredentialsError(f"the request failed: {type(error).__name__}")


def _certificate_invalid(cause: BaseException, peer: str, _timing: Timing) -> CredentialsError:
    return CredentialsError(f"cannot verify the TLS certificate of {peer}: {getattr(cause, 'verify_message', '')}")


def _dns_failure(_: BaseException, peer: str, _timing: Timing) -> CredentialsError:
    return SourceUnavailable(f"cannot reach {peer}: its name does not resolve")


def _connect_failed(cause: BaseException, peer: str, _timing: Timing) -> CredentialsError:
    reason = getattr(cause.__cause__, "strerror", None) or "connecting failed"
    return SourceUnavailable(f"cannot reach {peer}: {reason}")


def _connect_timeout(_: BaseException, peer: str, timing: Timing) -> CredentialsError:
    return SourceUnavailable(f"cannot reach {peer}: {timing.step}: no connection within {timing.connect}")


def _read_timeout(_: BaseException, peer: str, timing: Timing) -> CredentialsError:
    return SourceUnavailable(f"cannot reach {peer}: {timing.step}: no response within {timing.read}")


def _tls_error(cause: BaseException, peer: str, _timing: Timing) -> CredentialsError:
    return CredentialsError(f"TLS with {peer} failed: {getattr(cause, 'reason', None) or 'no reason given'}")


def _refused_by_proxy(cause: BaseException, peer: str, _timing: Timing) -> CredentialsError:
    # Without the reason phrase: the server behind the proxy may choose it.
    tunnel = _TUNNEL.search(str(cause))
    status = f" with status {tunnel[1]}" if tunnel else ""
    return CredentialsError(f"{peer} refused to connect to the server{status}")


def _connection_lost(_: BaseException, peer: str, _timing: Timing) -> CredentialsError:
    return CredentialsError(f"the connection to {peer} was lost before the response was complete")


# The first row that matches any cause. A row precedes those whose types the libraries derive from or wrap it in:
# for them a TLS error is a connection error, and so is a timeout.
_TABLE: tuple[tuple[type[BaseException], Callable[[BaseException, str, Timing], CredentialsError]], ...] = (
    (ssl.SSLCertVerificationError, _certificate_invalid),
    (socket.gaierror, _dns_failure),
    (NewConnectionError, _connect_failed),
    (ConnectTimeoutError, _connect_timeout),
    (TimeoutError, _read_timeout),
    (ssl.SSLError, _tls_error),
    (ProxyError, _refused_by_proxy),
    (requests.ConnectionError, _connection_lost),
    (ProtocolError, _connection_lost),
)
