"""The VAULT_* variables that HashiCorp's client reads on being built (V6).

None of them changes a request. One that its client (Go, `api.Config.ReadEnvironment`) would fail
on refuses the source by its name; the value may hold a secret and is never quoted.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Callable, Mapping

from publish.adapters.vault.pem import certificates, read_regular
from publish.domain.errors import CredentialsError

_MAX_UINT32 = 2**32 - 1
_BOOLEANS = frozenset({"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"})
# int() refuses over 4,300 digits; a uint32 has 10.
_UNSIGNED = re.compile(r"0*[0-9]{1,10}\Z")
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)(?::[+-]?[0-9]+)?\Z", re.IGNORECASE
)
_SECONDS_OR_DAYS = re.compile(r"[+-]?[0-9]+d?\Z")
# Go's time.ParseDuration; a micro sign is U+00B5 or the Greek letter U+03BC.
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)\Z")

# Go's url.Parse, as far as it refuses anything.
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
    for name, is_well_formed, wanted in _SIMPLE:
        if name in values and not is_well_formed(values[name]):
            raise CredentialsError(f"{wanted} is wanted in {name}, or nothing at all")
    _check_client_certificate(values)
    _check_roots(values)
    for names in (("VAULT_PROXY_ADDR", "VAULT_HTTP_PROXY"), ("VAULT_AGENT_ADDR", "VAULT_ADDR")):
        first = next(filter(values.get, names), None)
        if first and not _is_url(values[first]):
            raise CredentialsError(f"a URL is wanted in {first}, or nothing at all")


def _is_uint32(text: str) -> bool:
    return bool(_UNSIGNED.match(text)) and int(text) <= _MAX_UINT32


def _is_rate(text: str) -> bool:
    return bool(_NUMBER.match(text))


def _is_timeout(text: str) -> bool:
    return bool(_SECONDS_OR_DAYS.match(text) or _DURATION.match(text))


def _is_boolean(text: str) -> bool:
    return text in _BOOLEANS


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
    ("VAULT_RATE_LIMIT", _is_rate, "a number, or number:integer,"),
    ("VAULT_CLIENT_TIMEOUT", _is_timeout, "a number of seconds, or a duration such as 1m30s or 1d,"),
    ("VAULT_SKIP_VERIFY", _is_boolean, "true or false"),
    ("VAULT_SRV_LOOKUP", _is_boolean, "true or false"),
    ("VAULT_DISABLE_REDIRECTS", _is_boolean, "true or false"),
    ("VAULT_HEADERS", _are_headers, "a JSON object of strings, with no key that starts X-Vault-,"),
)


def _check_client_certificate(values: Mapping[str, str]) -> None:
    names = ("VAULT_CLIENT_CERT", "VAULT_CLIENT_KEY")
    given = [name for name in names if name in values]
    if len(given) == 1:
        raise CredentialsError(
            f"VAULT_CLIENT_CERT and VAULT_CLIENT_KEY are wanted together, and only one is: {given[0]}"
        )
    if not given:
        return
    certificate, key = (_path(values[name]) for name in names)
    for name, path in zip(names, (certificate, key), strict=True):
        try:
            read_regular(path)
        except (OSError, ValueError) as fault:
            raise CredentialsError(f"the file named in {name} cannot be read: {_reason(fault)}") from None
    try:
        # A key that needs a pass phrase is refused, where the default would ask at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as fault:
        reason = _reason(fault)
        raise CredentialsError(f"VAULT_CLIENT_CERT and VAULT_CLIENT_KEY name no pair: {reason}") from None


def _check_roots(values: Mapping[str, str]) -> None:
    name = next(filter(values.get, ("VAULT_CACERT", "VAULT_CACERT_BYTES", "VAULT_CAPATH")), None)
    if name is None:
        return
    value = values[name]
    try:
        if name == "VAULT_CACERT_BYTES":
            _need_certificate(_path(value))
        elif name == "VAULT_CACERT" or not os.path.isdir(_path(value)):
            _need_certificate(read_regular(_path(value)))
        else:
            _walk(_path(value))
    except (OSError, ValueError) as fault:
        raise CredentialsError(f"{name} names no PEM certificate that can be read: {_reason(fault)}") from None


def _walk(directory: bytes) -> None:
    """Every file below; a link to a directory is to Go a file that cannot be read."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _walk(entry.path)
            else:
                _need_certificate(read_regular(entry.path))


def _need_certificate(text: bytes) -> None:
    """Raises ValueError if no certificate stands in `text`; Go passes over broken ones beside a good one."""
    blocks = text.split(b"-----BEGIN CERTIFICATE-----")[1:]
    for block in blocks:
        try:
            certificates(b"-----BEGIN CERTIFICATE-----" + block)
        except ValueError:
            continue
        return
    raise ValueError("there is no PEM certificate in it")


def _path(value: str) -> bytes:
    """As it stood in the environment; what is not UTF-8 stands in `value` as surrogates (PEP 383)."""
    return value.encode("utf-8", "surrogateescape")


def _reason(fault: OSError | ValueError) -> str:
    if isinstance(fault, ssl.SSLError):
        return fault.reason or "it does not parse"
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault)


def _is_url(text: str) -> bool:
    if _CONTROL.search(text) or text.startswith(":"):
        return False
    text, _, fragment = text.partition("#")
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).partition("?")[0]
    if not rest.startswith("/"):
        # Opaque after a scheme; else a relative path, whose first segment may hold no colon.
        return bool(scheme) or (":" not in rest.partition("/")[0] and not _BAD_ESCAPE.search(rest + fragment))
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        userinfo, _, host = authority.rpartition("@")
        if not _USERINFO.match(userinfo) or _BAD_ESCAPE.search(userinfo) or not _HOST.match(host):
            return False
        rest = slash + path
    return not _BAD_ESCAPE.search(rest + fragment)
