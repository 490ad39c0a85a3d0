"""What kept a request from being answered, told apart: the server is not to be reached from here, or it is wrong (V4).

The library's exceptions hold the request, and with it the secrets; nothing made here refers to one.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator

import requests
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError

from publish.domain.errors import CredentialsError, SourceUnavailable

_TUNNEL = re.compile(r"Tunnel connection failed: ([0-9]{3})\b")


def translate(error: Exception) -> CredentialsError:
    """SourceUnavailable or CredentialsError for whatever a request raised."""
    causes = list(_causes(error))
    who = "the proxy" if any(isinstance(cause, ProxyError) for cause in causes) else "the server"
    for kind, judge in _TABLE:
        for cause in causes:
            if isinstance(cause, kind):
                return judge(cause, who)
    return CredentialsError(f"the request failed: {type(error).__name__}")


def _unverified(cause: BaseException, who: str) -> CredentialsError:
    return CredentialsError(f"the TLS certificate of {who} does not verify: {getattr(cause, 'verify_message', '')}")


def _unnamed(cause: BaseException, who: str) -> CredentialsError:  # noqa: ARG001  (one shape for the table)
    return SourceUnavailable(f"{who} cannot be reached: the name does not resolve")


def _unconnected(cause: BaseException, who: str) -> CredentialsError:
    why = getattr(cause.__cause__, "strerror", None) or "no connection could be made"
    return SourceUnavailable(f"{who} cannot be reached: {why}")


def _unconnected_in_time(cause: BaseException, who: str) -> CredentialsError:  # noqa: ARG001  (one shape for the table)
    return SourceUnavailable(f"{who} cannot be reached: connecting timed out")


def _unanswered(cause: BaseException, who: str) -> CredentialsError:  # noqa: ARG001  (one shape for the table)
    return SourceUnavailable(f"{who} cannot be reached: it did not answer in time")


def _insecure(cause: BaseException, who: str) -> CredentialsError:
    return CredentialsError(f"TLS with {who} failed: {getattr(cause, 'reason', None) or 'no reason given'}")


def _refused_by_proxy(cause: BaseException, who: str) -> CredentialsError:
    # The proxy's own words stay out: they are the server's to choose.
    tunnel = _TUNNEL.search(str(cause))
    status = f" with status {tunnel[1]}" if tunnel else ""
    return CredentialsError(f"{who} refused to connect to the server{status}")


def _lost(cause: BaseException, who: str) -> CredentialsError:  # noqa: ARG001  (one shape for the table)
    return CredentialsError(f"the connection to {who} was lost before the whole answer had come")


# The first row that fits any of the causes. A row stands above those that the libraries would count it among:
# to them a TLS error is a connection error, and so is a time-out.
_TABLE: tuple[tuple[type[BaseException], Callable[[BaseException, str], CredentialsError]], ...] = (
    (ssl.SSLCertVerificationError, _unverified),
    (socket.gaierror, _unnamed),
    (NewConnectionError, _unconnected),
    (ConnectTimeoutError, _unconnected_in_time),
    (TimeoutError, _unanswered),
    (ssl.SSLError, _insecure),
    (ProxyError, _refused_by_proxy),
    (requests.ConnectionError, _lost),
    (requests.exceptions.ChunkedEncodingError, _lost),
)


def _causes(error: Exception) -> Iterator[BaseException]:
    """It and every exception that it wraps, in whichever of the libraries' ways, outermost first."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        cause = waiting.pop(0)
        if isinstance(cause, BaseException) and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [*cause.args, getattr(cause, "reason", None), cause.__cause__, cause.__context__]
