"""Translates a failed request into the domain's errors.

The distinction that must hold: was the request certainly not applied, or possibly applied. A failed read is
never applied; a failed write possibly is, unless the store's error code rules that out.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from botocore.exceptions import ClientError

from publish.adapters.s3.transport_errors import (
    HINT_ELSEWHERE,
    HINT_NOT_S3,
    Classification,
    classify_transport_error,
    describe_transport_error,
)
from publish.domain.errors import (
    AlreadyExists,
    Conflict,
    CredentialsRejected,
    NotApplied,
    OutcomeUnknown,
    PermanentFault,
    StoreFault,
)
from publish.domain.redaction import Redactor

_HINT_CLOCK = "check this machine's clock"
_HINT_KEYS = "check access_key_id and secret_access_key"
_HINT_RIGHTS = "the key must be allowed to read, write, list and delete below the prefix"
_HINT_BUCKET = "check the bucket and the endpoint"
# RFC 9110 section 13.1.2 has 412 for every method but GET and HEAD.
_HINT_304 = "the store answers 304 in place of 412 to a taken name, as an old MinIO does; update the store"
_HINT_UNSUPPORTED = "the store does not support this request"

# Characters of a store's message that an error quotes.
_MAX_QUOTED = 1000

_REDIRECTS = range(300, 400)
_CLIENT_ERRORS = range(400, 500)
_SERVER_ERRORS = range(500, 600)

# AWS, "List of error codes"; other stores' codes have a comment.
_CODES = {
    "PreconditionFailed": Classification(AlreadyExists),
    "ConditionalRequestConflict": Classification(Conflict),
    "OperationAborted": Classification(Conflict),
    "SlowDown": Classification(NotApplied),
    "ServiceUnavailable": Classification(NotApplied),
    "Throttling": Classification(NotApplied),
    "ThrottlingException": Classification(NotApplied),
    "RequestLimitExceeded": Classification(NotApplied),
    "BandwidthLimitExceeded": Classification(NotApplied),
    "TooManyRequests": Classification(NotApplied),
    "SlowDownRead": Classification(NotApplied),  # MinIO
    "SlowDownWrite": Classification(NotApplied),  # MinIO
    "InternalError": Classification(OutcomeUnknown),
    "RequestTimeout": Classification(OutcomeUnknown),
    "ExpiredToken": Classification(CredentialsRejected),
    "InvalidAccessKeyId": Classification(CredentialsRejected, _HINT_KEYS),
    "InvalidToken": Classification(CredentialsRejected),
    "TokenRefreshRequired": Classification(CredentialsRejected),
    "SignatureDoesNotMatch": Classification(CredentialsRejected, _HINT_KEYS),
    "AccessDenied": Classification(PermanentFault, _HINT_RIGHTS),
    "RequestTimeTooSkewed": Classification(PermanentFault, _HINT_CLOCK),
    "RequestExpired": Classification(PermanentFault, _HINT_CLOCK),
    "NoSuchBucket": Classification(PermanentFault, _HINT_BUCKET),
    "InvalidBucketName": Classification(PermanentFault, _HINT_BUCKET),
    "PermanentRedirect": Classification(PermanentFault, HINT_ELSEWHERE),
    "TemporaryRedirect": Classification(PermanentFault, HINT_ELSEWHERE),
    "Redirect": Classification(PermanentFault, HINT_ELSEWHERE),
    "AuthorizationHeaderMalformed": Classification(PermanentFault, HINT_ELSEWHERE),
    "IllegalLocationConstraintException": Classification(PermanentFault, HINT_ELSEWHERE),
    "NotImplemented": Classification(PermanentFault, _HINT_UNSUPPORTED),
}
_STATUSES = {
    408: Classification(OutcomeUnknown),
    409: Classification(Conflict),
    412: Classification(AlreadyExists),
    429: Classification(NotApplied),
    501: Classification(PermanentFault, _HINT_UNSUPPORTED),
    505: Classification(PermanentFault),
}
# Newer credentials may be accepted: these have expired, or were replaced.
REFRESHABLE_CODES = frozenset(
    {"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch", "TokenRefreshRequired"}
)
# Sent again with the same credentials, which a store may learn of late.
_RESENT_UNCHANGED = frozenset({"ExpiredToken", "InvalidAccessKeyId"})
# The codes of stores without DeleteObjects, or that refuse it as botocore sends it (docs/s3-quirks.md).
# MalformedXML also means a key that XML cannot represent.
BATCH_DELETE_UNSUPPORTED = frozenset(
    {"NotImplemented", "MethodNotAllowed", "MalformedXML", "InvalidRequest", "InvalidArgument", "BadDigest"}
    | {"InvalidDigest", "MissingContentMD5", "MissingRequestBodyError", "405", "501"}
)


class ErrorTranslator:
    """Makes the domain's errors. Redacts what stores and libraries say."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """`secrets` are redacted in every message."""
        self._redactor = Redactor()
        self._redactor.add(secrets)

    def translate(self, error: Exception, request: str, *, write: bool, conditional: bool = False) -> StoreFault:
        """What `error` of `request` means. Also redacts `error` itself.

        `conditional`: the request is a put with `If-None-Match: *`.
        """
        error.args = tuple(self._redact(arg) if isinstance(arg, str) else arg for arg in error.args)
        if isinstance(error, ClientError):
            code, message = code_and_message(error)
            if conditional and _status(error) == HTTPStatus.NOT_MODIFIED:
                return PermanentFault(f"{request}: HTTP status 304 ({_HINT_304})")
            fault = self.translate_code(code, message, _status(error), request, write=write)
            return fault if conditional else _without_condition(fault, code)
        text = f"{request}: {self._redact(describe_transport_error(error))}"
        return _build(classify_transport_error(error), text, "", write=write)

    def translate_code(self, code: str, message: str, status: int, request: str, *, write: bool) -> StoreFault:
        """What a store's code means. `status`: HTTP's, or 0 for one key's code in an answer about several."""
        classification = _CODES.get(code) or _classify_status(status)
        if code and not code.isdigit():
            name = self._redact(code)
        else:
            # From a proxy or a web server, or without a body.
            name = f"HTTP status {status}"
            classification = classification._replace(hint=classification.hint or HINT_NOT_S3)
        message = self._redact(message)
        return _build(classification, f"{request}: {name}" + (f": {message}" if message else ""), code, write=write)

    def _redact(self, text: str) -> str:
        return self._redactor.redact(text, _MAX_QUOTED).rstrip(".")


def code_and_message(error: ClientError) -> tuple[str, str]:
    """The code and the message of a store's error response; empty if it has none."""
    details = error.response.get("Error", {})
    return str(details.get("Code") or ""), str(details.get("Message") or "")


def has_no_error_code(error: ClientError) -> bool:
    """Whether the response has no code, like every error response to a HEAD (RFC 9110 section 9.3.2)."""
    return _status(error) in _CLIENT_ERRORS and code_and_message(error)[0].isdigit()


def is_not_found(error: ClientError) -> bool:
    """Whether the object does not exist."""
    return code_and_message(error)[0] in {"NoSuchKey", "404"}


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _classify_status(status: int) -> Classification:
    if status in _STATUSES:
        return _STATUSES[status]
    if status in _REDIRECTS:
        return Classification(PermanentFault, HINT_ELSEWHERE)
    return Classification(OutcomeUnknown if status in _SERVER_ERRORS else PermanentFault)


def _without_condition(fault: StoreFault, code: str) -> StoreFault:
    """On an unconditional request, 409 and 412 mean a locked or busy object, not a lost race."""
    if isinstance(fault, Conflict) and code in _CODES:
        return NotApplied(str(fault))
    if isinstance(fault, Conflict | AlreadyExists):
        return PermanentFault(str(fault))
    return fault


def _build(classification: Classification, text: str, code: str, *, write: bool) -> StoreFault:
    fault, hint = classification
    if hint:
        text += f" ({hint})"
    if fault is CredentialsRejected:
        return CredentialsRejected(
            text, code, refreshable=code in REFRESHABLE_CODES, resend_unchanged=code in _RESENT_UNCHANGED
        )
    if fault is OutcomeUnknown and not write:
        return NotApplied(text)
    return fault(text)
