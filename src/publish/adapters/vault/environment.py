"""Required for parity with HashiCorp's client: refuses the malformed VAULT_* variables that it refuses.

No variable changes a request. The checks follow Go's `api.Config.ReadEnvironment` (hashicorp/vault).
Errors name the variable; its value may be a secret and is never quoted.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress

from publish.adapters._io import read_regular_file
from publish.domain.errors import CredentialsError
from publish.domain.go_syntax import FALSE, NANOSECONDS, TRUE

_MAX_UINT32 = 2**32 - 1
_MAX_FILE = 16 * 1024 * 1024
_BEGIN = b"-----BEGIN CERTIFICATE-----"
# Bounded, because int() refuses more than 4,300 digits; a uint32 has 10.
_UNSIGNED = re.compile(r"0*[0-9]{1,10}\Z")
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)(?::[+-]?[0-9]+)?\Z", re.IGNORECASE
)
_SECONDS_OR_DAYS = re.compile(r"[+-]?[0-9]+d?\Z")
_DURATION = re.compile(rf"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:{'|'.join(NANOSECONDS)}))+)\Z")

# What Go's url.Parse refuses.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USERINFO = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*\Z")
_HOST = re.compile(
    r"(?:\[[^\]]*\]|(?:[A-Za-z0-9_.~!$&'()*+,;=<>\"-]|[^\x00-\x7f]|%[89A-Fa-f][0-9A-Fa-f])*)(?::[0-9]*)?\Z"
)


def check_environment(environment: Mapping[str, str]) -> None:
    """Raises CredentialsError naming the first variable that is malformed. Empty counts as unset."""
    values = {name: value for name, value in environment.items() if value}
    for name, is_well_formed, expected in _SIMPLE:
        if name in values and not is_well_formed(values[name]):
            raise CredentialsError(f"{name} must be {expected}, or unset")
    _check_client_certificate(values)
    _check_ca(values)
    for names in (("VAULT_PROXY_ADDR", "VAULT_HTTP_PROXY"), ("VAULT_AGENT_ADDR", "VAULT_ADDR")):
        first = next(filter(values.get, names), None)
        if first and not _is_url(values[first]):
            raise CredentialsError(f"{first} must be a URL, or unset")


def _is_uint32(text: str) -> bool:
    return bool(_UNSIGNED.match(text)) and int(text) <= _MAX_UINT32


def _is_rate(text: str) -> bool:
    return bool(_NUMBER.match(text))


def _is_timeout(text: str) -> bool:
    return bool(_SECONDS_OR_DAYS.match(text) or _DURATION.match(text))


def _is_boolean(text: str) -> bool:
    return text in (TRUE | FALSE)


def _are_headers(text: str) -> bool:
    try:
        headers = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(headers, dict) and all(
        isinstance(value, str) and not name.startswith("X-Vault-") for name, value in headers.items()
    )


_SIMPLE: tuple[tuple[str, Callable[[str], bool], str], ...] = (
    ("VAULT_MAX_RETRIES", _is_uint32, "an unsigned 32-bit decimal"),
    ("VAULT_RATE_LIMIT", _is_rate, "a number or number:integer"),
    ("VAULT_CLIENT_TIMEOUT", _is_timeout, "a number of seconds or a duration such as 1m30s or 1d"),
    ("VAULT_SKIP_VERIFY", _is_boolean, "true or false"),
    ("VAULT_SRV_LOOKUP", _is_boolean, "true or false"),
    ("VAULT_DISABLE_REDIRECTS", _is_boolean, "true or false"),
    ("VAULT_HEADERS", _are_headers, "a JSON object of strings without keys that start with X-Vault-"),
)


def _check_client_certificate(values: Mapping[str, str]) -> None:
    names = ("VAULT_CLIENT_CERT", "VAULT_CLIENT_KEY")
    given = [name for name in names if name in values]
    if len(given) == 1:
        raise CredentialsError(f"VAULT_CLIENT_CERT and VAULT_CLIENT_KEY must be set together; only one is: {given[0]}")
    if not given:
        return
    certificate, key = (_path(values[name]) for name in names)
    for name, path in zip(names, (certificate, key), strict=True):
        try:
            read_regular_file(path, _MAX_FILE)
        except (OSError, ValueError) as fault:
            raise CredentialsError(f"cannot read the file that {name} names: {_reason(fault)}") from None
    try:
        # Without a password OpenSSL would ask for one at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as fault:
        reason = _reason(fault)
        raise CredentialsError(
            f"VAULT_CLIENT_CERT and VAULT_CLIENT_KEY do not form a valid key pair: {reason}"
        ) from None


def _check_ca(values: Mapping[str, str]) -> None:
    name = next(filter(values.get, ("VAULT_CACERT", "VAULT_CACERT_BYTES", "VAULT_CAPATH")), None)
    if name is None:
        return
    value = values[name]
    try:
        if name == "VAULT_CACERT_BYTES":
            _require_certificate(_path(value))
        elif name == "VAULT_CACERT" or not os.path.isdir(_path(value)):
            _require_certificate(read_regular_file(_path(value), _MAX_FILE))
        else:
            _walk(_path(value))
    except (OSError, ValueError) as fault:
        raise CredentialsError(f"{name} has no readable PEM certificate: {_reason(fault)}") from None


def _walk(directory: bytes) -> None:
    """Checks every file below. Go fails on a link to a directory, as it does on an unreadable file."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _walk(entry.path)
            else:
                _require_certificate(read_regular_file(entry.path, _MAX_FILE))


def _require_certificate(text: bytes) -> None:
    """Raises ValueError if `text` holds no certificate. Go skips broken ones beside a valid one."""
    for block in text.split(_BEGIN)[1:]:
        with suppress(ssl.SSLError):
            pem = (_BEGIN + block).decode("ascii", "ignore")
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
            return
    raise ValueError("no PEM certificate in it")


def _path(value: str) -> bytes:
    """The bytes of the environment, which are surrogates in `value` if they are not UTF-8 (PEP 383)."""
    return value.encode("utf-8", "surrogateescape")


def _reason(fault: OSError | ValueError) -> str:
    if isinstance(fault, ssl.SSLError):
        return fault.reason or "malformed"
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault)


def _is_url(text: str) -> bool:
    if _CONTROL.search(text) or text.startswith(":"):
        return False
    text, _, fragment = text.partition("#")
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).partition("?")[0]
    if not rest.startswith("/"):
        # Opaque after a scheme; otherwise a relative path, whose first segment must not contain a colon.
        return bool(scheme) or (":" not in rest.partition("/")[0] and not _BAD_ESCAPE.search(rest + fragment))
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        userinfo, _, host = authority.rpartition("@")
        if not _USERINFO.match(userinfo) or _BAD_ESCAPE.search(userinfo) or not _HOST.match(host):
            return False
        rest = slash + path
    return not _BAD_ESCAPE.search(rest + fragment)
