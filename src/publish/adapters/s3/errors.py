"""What an answer of a store, or none, means to the domain: the one table.

The line that must hold is between what certainly did not happen and what perhaps did. A failed
read is always the first; a failed write is the second unless the store's own code rules it out.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ParamValidationError,
    ProxyConnectionError,
    SSLError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import ConnectTimeoutError as NoConnectionInTime
from urllib3.exceptions import HTTPError, LocationValueError, NewConnectionError
from urllib3.util.ssl_match_hostname import CertificateError

from publish.adapters.s3.client import IncompleteResponse, NotAnS3Response
from publish.domain.errors import (
    AlreadyExists,
    Conflict,
    CredentialsRejected,
    NotApplied,
    OutcomeUnknown,
    PermanentFault,
    StoreFault,
    Unreachable,
)
from publish.domain.redaction import Redactor

_ELSEWHERE = "the store is not at this endpoint or not in this region; check endpoint and region"
_CLOCK = "check this machine's clock"
_KEYS = "check access_key_id and secret_access_key"
_BUCKET = "check the bucket and the endpoint"
_NOT_S3 = "this is no answer of an S3 store; check the endpoint and the proxy"
_TRUST = "check the endpoint, and that this machine trusts its certificate's authority"
_ENDPOINT = "check the endpoint"
_WRONG_PROTOCOL = "check that the endpoint, or the proxy, is to be spoken to by https"


# A chain that does not verify, and a certificate for another host.
_UNTRUSTED = (ssl.SSLCertVerificationError, CertificateError)
_REDIRECTS = range(300, 400)
_REFUSALS = range(400, 500)
_FAULTS = range(500, 600)
# What urllib3 and the name look-up raise for a host that cannot be one.
_NO_URL = (LocationValueError, UnicodeError, ParamValidationError)


class _Verdict(NamedTuple):
    fault: type[StoreFault]
    hint: str = ""


# AWS, "Error responses" and "List of error codes"; others' codes where a name follows.
_CODES = {
    "PreconditionFailed": _Verdict(AlreadyExists),
    "ConditionalRequestConflict": _Verdict(Conflict),
    "OperationAborted": _Verdict(Conflict),
    "SlowDown": _Verdict(NotApplied),
    "ServiceUnavailable": _Verdict(NotApplied),
    "Throttling": _Verdict(NotApplied),
    "ThrottlingException": _Verdict(NotApplied),
    "RequestLimitExceeded": _Verdict(NotApplied),
    "BandwidthLimitExceeded": _Verdict(NotApplied),
    "TooManyRequests": _Verdict(NotApplied),
    "SlowDownRead": _Verdict(NotApplied),  # MinIO
    "SlowDownWrite": _Verdict(NotApplied),  # MinIO
    "InternalError": _Verdict(OutcomeUnknown),
    "RequestTimeout": _Verdict(OutcomeUnknown),
    "ExpiredToken": _Verdict(CredentialsRejected),
    "InvalidAccessKeyId": _Verdict(CredentialsRejected),
    "InvalidToken": _Verdict(CredentialsRejected),
    "TokenRefreshRequired": _Verdict(CredentialsRejected),
    "SignatureDoesNotMatch": _Verdict(CredentialsRejected, _KEYS),
    "RequestTimeTooSkewed": _Verdict(PermanentFault, _CLOCK),
    "RequestExpired": _Verdict(PermanentFault, _CLOCK),
    "NoSuchBucket": _Verdict(PermanentFault, _BUCKET),
    "InvalidBucketName": _Verdict(PermanentFault, _BUCKET),
    "PermanentRedirect": _Verdict(PermanentFault, _ELSEWHERE),
    "TemporaryRedirect": _Verdict(PermanentFault, _ELSEWHERE),
    "Redirect": _Verdict(PermanentFault, _ELSEWHERE),
    "AuthorizationHeaderMalformed": _Verdict(PermanentFault, _ELSEWHERE),
    "IllegalLocationConstraintException": _Verdict(PermanentFault, _ELSEWHERE),
    "NotImplemented": _Verdict(PermanentFault, "the store cannot do this"),
}
_STATUSES = {
    408: _Verdict(OutcomeUnknown),
    409: _Verdict(Conflict),
    412: _Verdict(AlreadyExists),
    429: _Verdict(NotApplied),
    501: _Verdict(PermanentFault, "the store cannot do this"),
    505: _Verdict(PermanentFault),
}
# Of credentials that were good once: expired, or rotated away (S6).
REFRESHABLE_CODES = frozenset({"ExpiredToken", "InvalidAccessKeyId"})
# How stores say that they have no batch delete, or not as this client sends it; a key that XML
# cannot hold is MalformedXML, and goes alone.
BATCH_DELETE_UNSUPPORTED = frozenset(
    {"NotImplemented", "MethodNotAllowed", "MalformedXML", "InvalidRequest", "InvalidArgument", "BadDigest"}
    | {"InvalidDigest", "MissingContentMD5", "MissingRequestBodyError", "405", "501"}
)


class ErrorTranslator:
    """Makes errors of this package's requests; nothing that a secret is part of stays in their text."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        """`secrets`: what is struck out of whatever a store or a library says."""
        self._secrets = Redactor()
        self._secrets.add(secrets)

    def fault(self, error: Exception, request: str, *, write: bool, conditional: bool = False) -> StoreFault:
        """What `error`, met in `request` (named in the text), means. Also cleans `error`'s own text.

        `conditional`: the request is a put that asks for nothing to be there.
        """
        error.args = tuple(self._clean(arg) if isinstance(arg, str) else arg for arg in error.args)
        if isinstance(error, ClientError):
            code, message = said(error)
            fault = self.refusal(code, message, _status(error), request, write=write)
            return fault if conditional else _unconditional(fault, code)
        verdict = _of_line(error)
        return _make(verdict, f"{request}: {self._clean(_words(error))}", "", write=write)

    def refusal(self, code: str, message: str, status: int, request: str, *, write: bool) -> StoreFault:
        """What a store's code means. `status`: HTTP's, or 0 for a code within an answer about several keys."""
        words = self._clean(message)
        verdict = _CODES.get(code) or _of_status(status)
        if code and not code.isdigit():
            name = self._clean(code)
        else:
            # Not S3's own words: a proxy's or a web server's, or none at all.
            name = f"HTTP status {status}"
            verdict = verdict._replace(hint=verdict.hint or _NOT_S3)
        text = f"{request}: {name}" + (f": {words}" if words else "")
        return _make(verdict, text, code, write=write)

    def _clean(self, text: str) -> str:
        text = self._secrets.strike(text)
        return " ".join(text.split())[:1000].rstrip(".")


def _unconditional(fault: StoreFault, code: str) -> StoreFault:
    """What the words for a lost race mean where nobody races: a lock on the object, or a store that is busy with it."""
    if isinstance(fault, Conflict) and code in _CODES:
        return NotApplied(str(fault))
    if isinstance(fault, Conflict | AlreadyExists):
        return PermanentFault(str(fault))
    return fault


def said(error: ClientError) -> tuple[str, str]:
    """The code and the message of a store's refusal."""
    told = error.response.get("Error", {})
    return str(told.get("Code", "")), str(told.get("Message", ""))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def nameless(error: ClientError) -> bool:
    """Whether a refusal came without a code, as every HEAD's does (RFC 9110 section 9.3.2)."""
    return _status(error) in _REFUSALS and said(error)[0].isdigit()


def missing(error: ClientError) -> bool:
    """Whether there is no such object."""
    code, _ = said(error)
    return code in {"NoSuchKey", "404"}


def _of_status(status: int) -> _Verdict:
    if status in _STATUSES:
        return _STATUSES[status]
    if status in _REDIRECTS:
        return _Verdict(PermanentFault, _ELSEWHERE)
    return _Verdict(OutcomeUnknown if status in _FAULTS else PermanentFault)


def _of_tls(error: Exception) -> _Verdict:
    for cause in _causes(error):
        if isinstance(cause, _UNTRUSTED):
            return _Verdict(PermanentFault, _TRUST)
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError):
            return _Verdict(OutcomeUnknown)
    return _Verdict(PermanentFault, _WRONG_PROTOCOL)


def _of_proxy(error: Exception) -> _Verdict:
    for cause in _causes(error):
        if isinstance(cause, _UNTRUSTED):
            return _Verdict(PermanentFault, _TRUST)
        # http.client's only word for a CONNECT that got an answer other than 200.
        if "Tunnel connection failed: 4" in str(cause):
            return _Verdict(PermanentFault, "the proxy refuses; check the proxy's rules and the endpoint")
        if isinstance(cause, NewConnectionError | NoConnectionInTime) or "Tunnel connection failed" in str(cause):
            return _Verdict(Unreachable)
    # urllib3 says the same of a connection that broke when the proxy had the request.
    return _Verdict(OutcomeUnknown)


def _of_connection(_: Exception) -> _Verdict:
    return _Verdict(Unreachable)


def _of_web_page(_: Exception) -> _Verdict:
    return _Verdict(PermanentFault, _NOT_S3)


def _of_broken_line(error: Exception) -> _Verdict:
    for cause in _causes(error):
        if isinstance(cause, _NO_URL):
            return _Verdict(PermanentFault, _ENDPOINT)
        # urllib3 trips over the method that a 303 asks for, since botocore's headers are bytes.
        if isinstance(cause, TypeError):
            return _Verdict(PermanentFault, _ELSEWHERE)
    return _Verdict(OutcomeUnknown)


# The first that fits counts: botocore's SSLError and ProxyConnectionError are connection errors, too.
_LINE: tuple[tuple[type[Exception], Callable[[Exception], _Verdict]], ...] = (
    (SSLError, _of_tls),
    (ProxyConnectionError, _of_proxy),
    (EndpointConnectionError, _of_connection),
    (ConnectTimeoutError, _of_connection),
    (NotAnS3Response, _of_web_page),
    (HTTPClientError, _of_broken_line),
    (BotoCoreError, _of_broken_line),
    (ResponseParserError, _of_broken_line),
    (HTTPError, _of_broken_line),
    (IncompleteResponse, _of_broken_line),
    (ValueError, _of_broken_line),  # a number in the answer that is none
)


def _of_line(error: Exception) -> _Verdict:
    for kind, verdict in _LINE:
        if isinstance(error, kind):
            return verdict(error)
    raise error


def _words(error: Exception) -> str:
    """What failed, without the layers that wrapped it: a peer and a reason."""
    told = getattr(error, "kwargs", {})
    url = urlsplit(str(told.get("proxy_url") or told.get("endpoint_url") or ""))
    *_, reason = _causes(error)
    words = getattr(reason, "strerror", None) or str(reason)
    for kind, what in (
        (SSLError, "no TLS connection to"),
        (ProxyConnectionError, "no connection through the proxy"),
        (EndpointConnectionError, "no connection to"),
        (ConnectTimeoutError, "no connection to"),
        (HTTPClientError, "no whole answer from"),
    ):
        if isinstance(error, kind) and url.netloc:
            return f"{what} {url.scheme}://{url.netloc}: {words}"
    return str(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps, as botocore and urllib3 wrap: as a cause, a keyword or an argument."""
    seen: list[BaseException] = []
    waiting = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause in seen:
            continue
        seen.append(cause)
        yield cause
        kwargs = getattr(cause, "kwargs", {})
        inner = [kwargs.get("error"), getattr(cause, "reason", None), cause.__context__, *cause.args]
        waiting += [one for one in inner if isinstance(one, BaseException)]


def _make(verdict: _Verdict, text: str, code: str, *, write: bool) -> StoreFault:
    fault, hint = verdict
    if hint:
        text += f" ({hint})"
    if fault is CredentialsRejected:
        return CredentialsRejected(text, code, refreshable=code in REFRESHABLE_CODES)
    if fault is OutcomeUnknown and not write:
        fault = NotApplied
    return fault(text)
