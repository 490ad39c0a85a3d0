"""The grammar of `vault:` locations. Text that is ambiguous is refused.

No error quotes a value: a misplaced one may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from publish.domain.errors import ConfigError
from publish.domain.server_url import Origin, parse_proxy_url

SERVICE_ACCOUNT_TOKEN = b"/var/run/secrets/kubernetes.io/serviceaccount/token"

_KEYS = ("auth", "role", "approle", "mount", "ca", "proxy", "kv", "authmount", "namespace", "token")
_WORD = re.compile(r"[A-Za-z_-]{1,32}\Z")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_BAD_SEGMENT = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)")


class KubernetesAuth(NamedTuple):
    """Logs in with a service account's token, read from the file `token`."""

    role: str
    token: bytes = SERVICE_ACCOUNT_TOKEN
    mount: str = "kubernetes"


class AppRoleAuth(NamedTuple):
    """Logs in with the files `role_id` and `secret_id` of a private directory."""

    directory: bytes
    mount: str = "approle"


class VaultUrl(NamedTuple):
    """Where a secret is and how to log in. Text is decoded; paths on this node are bytes.

    `ca`, `proxy` and `namespace` None: the system's CA bundle, a direct connection, no namespace.
    """

    server: Origin
    path: str
    login: KubernetesAuth | AppRoleAuth
    mount: str = "secret"
    kv: int = 2
    ca: bytes | None = None
    proxy: str | None = None
    namespace: str | None = None


def parse_vault_url(text: str) -> VaultUrl:
    """Parses a location. Raises ConfigError.

    Bytes that are not UTF-8 are surrogates in `text` (PEP 383).
    """
    server, rest = Origin.split(text)
    if "#" in rest:
        raise ConfigError("must not have a fragment")
    path, _, query = rest.partition("?")
    keys = _parse_query(query)
    ca = _file(keys, "ca")
    if ca is not None and server.scheme == "http":
        raise ConfigError("ca= requires https://")
    return VaultUrl(
        server=server,
        path=_parse_path("the path", _decode("the path", path.removeprefix("/"))),
        login=_login(keys),
        mount=_parse_path("mount=", keys.get("mount", b"secret")),
        kv=int(_one_of(keys, "kv", ("1", "2"), b"2")),
        ca=ca,
        proxy=_proxy(keys),
        namespace=_parse_path("namespace=", keys["namespace"]) if "namespace" in keys else None,
    )


def _login(keys: dict[str, bytes]) -> KubernetesAuth | AppRoleAuth:
    if "auth" not in keys:
        raise ConfigError("auth=kubernetes or auth=approle is required")
    auth = _one_of(keys, "auth", ("kubernetes", "approle"))
    mount = _parse_path("authmount=", keys.get("authmount", auth))
    if auth == "kubernetes":
        _require(keys, "role", "kubernetes", refused=("approle",))
        return KubernetesAuth(_text("role=", keys["role"]), _file(keys, "token") or SERVICE_ACCOUNT_TOKEN, mount)
    _require(keys, "approle", "approle", refused=("role", "token"))
    return AppRoleAuth(_file(keys, "approle") or b"", mount)


def _require(keys: dict[str, bytes], required: str, auth: str, refused: Collection[str]) -> None:
    for key in refused:
        if key in keys:
            raise ConfigError(f"{key}= cannot be used with auth={auth}")
    if required not in keys:
        raise ConfigError(f"auth={auth} requires {required}=")


def _parse_query(query: str) -> dict[str, bytes]:
    """The query's keys, decoded once; `+` is a space."""
    keys: dict[str, bytes] = {}
    for pair in query.split("&") if query else ():
        if ";" in pair:
            raise ConfigError("unescaped ; in the query (write %3B)")
        name, _, value = (_decode("the query", part.replace("+", " ")) for part in pair.partition("="))
        key = name.decode("utf-8", "replace")
        if key not in _KEYS:
            quoted = f": {key}" if _WORD.match(key) else ""
            raise ConfigError(f"unknown key in the query (expected {', '.join(sorted(_KEYS))}){quoted}")
        if key in keys:
            raise ConfigError(f"{key}= is given twice")
        if not value:
            raise ConfigError(f"{key}= has no value")
        keys[key] = value
    return keys


def _proxy(keys: dict[str, bytes]) -> str | None:
    return parse_proxy_url(keys["proxy"].decode("utf-8", "replace")) if "proxy" in keys else None


def _one_of(keys: dict[str, bytes], key: str, values: Collection[str], default: bytes = b"") -> str:
    value = keys.get(key, default).decode("utf-8", "replace")
    if value not in values:
        raise ConfigError(f"{key}= must be {' or '.join(values)}")
    return value


def _file(keys: dict[str, bytes], key: str) -> bytes | None:
    value = keys.get(key)
    if value is not None and b"\0" in value:
        raise ConfigError(f"{key}= contains a NUL character")
    return value


def _parse_path(what: str, value: bytes | str) -> str:
    """A path inside Vault. Refuses what a client, a proxy or a server might rewrite."""
    text = value if isinstance(value, str) else _text(what, value)
    if not text:
        raise ConfigError(f"{what} is empty")
    if not text.isprintable() or any(map(str.isspace, text)):
        raise ConfigError(f"{what} contains whitespace or a control character")
    if _BAD_SEGMENT.search(text):
        raise ConfigError(f"{what} has an empty, . or .. segment")
    return text


def _text(what: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{what} is not UTF-8") from None


def _decode(what: str, text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    if _BAD_ESCAPE.search(raw):
        raise ConfigError(f"invalid percent-escape in {what} (write % as %25)")
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), raw)
