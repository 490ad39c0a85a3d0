"""Parses Vault's responses. Errors quote a body only after it is redacted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from publish.domain.credentials import FIELDS, Credentials, parse_credentials, reject_unknown_fields
from publish.domain.errors import CredentialsError
from publish.domain.redaction import Redactor

_UNEXPECTED = "unexpected response (is this a Vault server?)"
# Characters of a server's message that an error quotes.
_MAX_QUOTED = 500
_OK = 200
_REDIRECTS = range(300, 400)
_NOT_FOUND = 404


class Response(NamedTuple):
    """The HTTP response to a request for `url`. `location` is the header of that name, or empty."""

    status: int
    url: str
    location: str
    body: bytes


def json_body(response: Response, step: str, redactor: Redactor) -> Mapping[str, object]:
    """The JSON object of a successful response. Raises CredentialsError for any other."""
    parsed = _parse(response.body)
    if response.status == _OK:
        if not isinstance(parsed, dict):
            raise CredentialsError(f"{step}: {_UNEXPECTED}")
        return parsed
    if response.status in _REDIRECTS:
        raise CredentialsError(f"{step}: unsupported redirect (only one 307 or 308 is followed): {response.status}")
    messages = [text for key in ("errors", "warnings") for text in _texts(parsed, key)]
    if not messages and response.status == _NOT_FOUND:
        messages = ["not found (check the path, mount=, kv= and authmount=, and whether it was deleted)"]
    quoted = f": {redactor.redact('; '.join(messages), _MAX_QUOTED)}" if messages else ""
    raise CredentialsError(f"{step}: the server responded with status {response.status}{quoted}")


def parse_login(login: Mapping[str, object]) -> str:
    """The token of a login's response. Raises CredentialsError."""
    auth = login.get("auth")
    token = auth.get("client_token") if isinstance(auth, dict) else None
    if not isinstance(token, str) or not token:
        raise CredentialsError(f"login: {_UNEXPECTED}: it has no token")
    # No header can carry another token, and the library's error would quote it.
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialsError(f"login: {_UNEXPECTED}: malformed token")
    return token


def parse_secret(secret: Mapping[str, object], kv: int, redactor: Redactor) -> Credentials:
    """The credentials in a KV secret. Values are not trimmed. Raises CredentialsError."""
    data = secret.get("data")
    if kv != 1 and isinstance(data, dict):
        data = data.get("data")
    if not isinstance(data, dict):
        raise CredentialsError(f"read: {_UNEXPECTED} for KV version {kv}")
    fields = {name: value for name, value in data.items() if isinstance(value, str)}
    redactor.add(fields.values())
    reject_unknown_fields((name if name in FIELDS else redactor.redact(name, _MAX_QUOTED) for name in data), FIELDS)
    for name in sorted(data):
        if name not in fields:
            raise CredentialsError(f"not a string: {name}")
    return parse_credentials(fields)


def _parse(body: bytes) -> object:
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        # Not re-raised: the exception holds the body.
        return None
    return parsed


def _texts(parsed: object, key: str) -> list[str]:
    texts = parsed.get(key) if isinstance(parsed, dict) else None
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
