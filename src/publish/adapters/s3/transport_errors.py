"""Classifies failures below S3: TLS, proxies, connections, and responses that no store sent."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from botocore.exceptions import (
    BotoCoreError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ParamValidationError,
    ProxyConnectionError,
    SSLError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import ConnectTimeoutError as Urllib3ConnectTimeoutError
from urllib3.exceptions import HTTPError, LocationValueError, NewConnectionError
from urllib3.util.ssl_match_hostname import CertificateError

from publish.adapters._io import causes
from publish.adapters.s3.key_encoding import UnknownEncoding
from publish.adapters.s3.responses import IncompleteResponse, NotAnS3Response, RepeatedToken
from publish.domain.errors import OutcomeUnknown, PermanentFault, StoreFault, Unreachable

HINT_ELSEWHERE = "the store is not at this endpoint or not in this region; check endpoint and region"
HINT_NOT_S3 = "not an S3 response; check the endpoint and the proxy"
_HINT_STORE = "the store's listings do not work; use another store or version"
_HINT_CA = "check the endpoint, and that this machine trusts the CA of its certificate"
_HINT_ENDPOINT = "check the endpoint"
_HINT_PROTOCOL = "check whether the endpoint or proxy really speaks https"
_HINT_PROXY = "the proxy refuses; check the proxy's rules and the endpoint"

_UNTRUSTED = (ssl.SSLCertVerificationError, CertificateError)
_TLS_CUT_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
# Raised by urllib3 and by the name lookup for an invalid host.
_INVALID_HOST = (LocationValueError, UnicodeError, ParamValidationError)
# http.client's message for a CONNECT that was answered with another status than 200.
_TUNNEL_FAILED = "Tunnel connection failed"


class Classification(NamedTuple):
    """What a failure means, and what the user can check."""

    fault: type[StoreFault]
    hint: str = ""


def classify_transport_error(error: Exception) -> Classification:
    """Raises `error` itself if it is unknown, which makes it an internal error."""
    for kind, classify in _TRANSPORT_ERRORS:
        if isinstance(error, kind):
            return classify(error)
    raise error


def _classify_tls_error(error: Exception) -> Classification:
    for cause in causes(error):
        if isinstance(cause, _UNTRUSTED):
            return Classification(PermanentFault, _HINT_CA)
        if isinstance(cause, _TLS_CUT_OFF):
            return Classification(OutcomeUnknown)
    return Classification(PermanentFault, _HINT_PROTOCOL)


def _classify_proxy_error(error: Exception) -> Classification:
    for cause in causes(error):
        if isinstance(cause, _UNTRUSTED):
            return Classification(PermanentFault, _HINT_CA)
        if f"{_TUNNEL_FAILED}: 4" in str(cause):
            return Classification(PermanentFault, _HINT_PROXY)
        if isinstance(cause, NewConnectionError | Urllib3ConnectTimeoutError) or _TUNNEL_FAILED in str(cause):
            return Classification(Unreachable)
    # urllib3 raises the same for a connection that broke after the proxy had the request.
    return Classification(OutcomeUnknown)


def _classify_connect_error(_: Exception) -> Classification:
    return Classification(Unreachable)


def _classify_not_s3(_: Exception) -> Classification:
    return Classification(PermanentFault, HINT_NOT_S3)


def _classify_broken_listing(_: Exception) -> Classification:
    return Classification(PermanentFault, _HINT_STORE)


def _classify_connection_error(error: Exception) -> Classification:
    for cause in causes(error):
        if isinstance(cause, _INVALID_HOST):
            return Classification(PermanentFault, _HINT_ENDPOINT)
        # A 303: urllib3 changes the method and fails on botocore's headers, which are bytes.
        if isinstance(cause, TypeError):
            return Classification(PermanentFault, HINT_ELSEWHERE)
    return Classification(OutcomeUnknown)


# The first match counts: botocore's SSLError and ProxyConnectionError are connection errors, too.
_TRANSPORT_ERRORS: tuple[tuple[type[Exception], Callable[[Exception], Classification]], ...] = (
    (SSLError, _classify_tls_error),
    (ProxyConnectionError, _classify_proxy_error),
    (EndpointConnectionError, _classify_connect_error),
    (ConnectTimeoutError, _classify_connect_error),
    (NotAnS3Response, _classify_not_s3),
    (RepeatedToken, _classify_broken_listing),
    (HTTPClientError, _classify_connection_error),
    (BotoCoreError, _classify_connection_error),
    (ResponseParserError, _classify_connection_error),
    (HTTPError, _classify_connection_error),
    (IncompleteResponse, _classify_connection_error),
    (UnknownEncoding, _classify_connection_error),
    (ValueError, _classify_connection_error),  # malformed numbers in the response
)


def describe_transport_error(error: Exception) -> str:
    """The peer and the innermost reason, without the layers that wrap it."""
    details = getattr(error, "kwargs", {})
    url = urlsplit(str(details.get("proxy_url") or details.get("endpoint_url") or ""))
    *_, innermost = causes(error)
    reason = getattr(innermost, "strerror", None) or str(innermost)
    for kind, what in (
        (SSLError, "no TLS connection to"),
        (ProxyConnectionError, "no connection through the proxy"),
        (EndpointConnectionError, "no connection to"),
        (ConnectTimeoutError, "no connection to"),
        (HTTPClientError, "no complete response from"),
    ):
        if isinstance(error, kind) and url.netloc:
            return f"{what} {url.scheme}://{url.netloc}: {reason}"
    return str(error)
