"""What Vault sends, taken apart. A body of another shape is refused; no text made here quotes one unstruck (V8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from publish.adapters.vault.redaction import Secrets
from publish.domain.credentials import FIELDS, Credentials, parse_credentials, reject_unknown_fields
from publish.domain.errors import CredentialsError

_NOT_VAULTS = "its answer is not what Vault sends"
_OK = 200
_REDIRECTS = range(300, 400)
_NOT_FOUND = 404


class Answer(NamedTuple):
    """One HTTP answer to a request for `url`; `location` is its header of that name, empty if it has none."""

    status: int
    url: str
    location: str
    body: bytes


def document(answer: Answer, step: str, secrets: Secrets) -> Mapping[str, object]:
    """The JSON object of a success. Raises CredentialsError for every other answer."""
    parsed = _parse(answer.body)
    if answer.status == _OK:
        if not isinstance(parsed, dict):
            raise CredentialsError(f"{step}: {_NOT_VAULTS}")
        return parsed
    if answer.status in _REDIRECTS:
        raise CredentialsError(f"{step}: it redirects, which is followed once and for 307 and 308: {answer.status}")
    said = [text for key in ("errors", "warnings") for text in _texts(parsed, key)]
    if not said and answer.status == _NOT_FOUND:
        said = ["there is nothing of that name (or it is deleted, or mount=, kv= or authmount= is another)"]
    quoted = f": {secrets.strike('; '.join(said))}" if said else ""
    raise CredentialsError(f"{step}: it answered with status {answer.status}{quoted}")


def parse_login(login: Mapping[str, object]) -> str:
    """The token that a login gave. Raises CredentialsError."""
    auth = login.get("auth")
    token = auth.get("client_token") if isinstance(auth, dict) else None
    if not isinstance(token, str) or not token:
        raise CredentialsError(f"login: {_NOT_VAULTS}: there is no token in it")
    # Anything else could not go out in a header, and the library's words about it would hold it.
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CredentialsError(f"login: {_NOT_VAULTS}: its token cannot be one")
    return token


def parse_secret(secret: Mapping[str, object], kv: int, secrets: Secrets) -> Credentials:
    """The credentials in a KV secret; values are taken as they are (V7). Raises CredentialsError."""
    data = secret.get("data")
    if kv != 1 and isinstance(data, dict):
        data = data.get("data")
    if not isinstance(data, dict):
        raise CredentialsError(f"read: {_NOT_VAULTS} for KV version {kv}")
    fields = {name: value for name, value in data.items() if isinstance(value, str)}
    secrets.add(*fields.values())
    reject_unknown_fields((name if name in FIELDS else secrets.strike(name) for name in data), FIELDS)
    for name in sorted(data):
        if name not in fields:
            raise CredentialsError(f"the field is not a string: {name}")
    return parse_credentials(fields)


def _parse(body: bytes) -> object:
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        # The exception holds the body; returning from here drops it.
        return None
    return parsed


def _texts(parsed: object, key: str) -> list[str]:
    texts = parsed.get(key) if isinstance(parsed, dict) else None
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []
