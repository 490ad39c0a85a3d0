"""The grammar of `vault:` locations (V1 to V3). One meaning for each text, and every other text refused.

No refusal quotes a value: where something is out of place it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from publish.domain import proxy as proxies
from publish.domain.errors import ConfigError
from publish.domain.server_url import Origin

SERVICE_ACCOUNT_TOKEN = b"/var/run/secrets/kubernetes.io/serviceaccount/token"

_KEYS = ("auth", "role", "approle", "mount", "ca", "proxy", "kv", "authmount", "namespace", "token")
_WORD = re.compile(r"[A-Za-z_-]{1,32}\Z")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")
_BAD_SEGMENT = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)")


class VaultUrl(NamedTuple):
    """Where a secret is and how to log in for it. Texts are decoded, paths of this node are bytes.

    `ca`, `proxy` and `namespace` None: the node's roots, a direct connection, no namespace.
    """

    server: Origin
    path: str
    login: Kubernetes | AppRole
    mount: str = "secret"
    kv: int = 2
    ca: bytes | None = None
    proxy: str | None = None
    namespace: str | None = None

    def __str__(self) -> str:
        """The location's one canonical text, without `vault:`."""
        pairs = [*self.login.pairs(), ("mount", self.mount.encode()), ("kv", b"%d" % self.kv)]
        optional = (
            ("ca", self.ca),
            ("proxy", self.proxy and self.proxy.encode()),
            ("namespace", self.namespace and self.namespace.encode()),
        )
        pairs += [(key, value) for key, value in optional if value]
        query = "&".join(f"{key}={_quote(value)}" for key, value in pairs)
        return f"{self.server}/{_quote(self.path.encode())}?{query}"


class Kubernetes(NamedTuple):
    """A login with a service account's token, read from the file `token`."""

    role: str
    token: bytes = SERVICE_ACCOUNT_TOKEN
    mount: str = "kubernetes"

    def pairs(self) -> list[tuple[str, bytes]]:
        """Its part of a location."""
        return [
            ("auth", b"kubernetes"),
            ("role", self.role.encode()),
            ("token", self.token),
            ("authmount", self.mount.encode()),
        ]


class AppRole(NamedTuple):
    """A login with the files `role_id` and `secret_id` of a private directory."""

    directory: bytes
    mount: str = "approle"

    def pairs(self) -> list[tuple[str, bytes]]:
        """Its part of a location."""
        return [("auth", b"approle"), ("approle", self.directory), ("authmount", self.mount.encode())]


def parse_vault_url(text: str) -> VaultUrl:
    """What a location says. Raises ConfigError.

    What is not UTF-8 in `text` stands in it as surrogates (PEP 383).
    """
    server, rest = Origin.split(text)
    if "#" in rest:
        raise ConfigError("it has a fragment")
    path, _, query = rest.partition("?")
    keys = _parse_query(query)
    ca = _file(keys, "ca")
    if ca is not None and server.scheme == "http":
        raise ConfigError("ca= has no use with http://")
    return VaultUrl(
        server=server,
        path=_segments("the path", _decode("the path", path.removeprefix("/"))),
        login=_login(keys),
        mount=_segments("mount=", keys.get("mount", b"secret")),
        kv=int(_choice(keys, "kv", ("1", "2"), b"2")),
        ca=ca,
        proxy=_proxy(keys),
        namespace=_segments("namespace=", keys["namespace"]) if "namespace" in keys else None,
    )


def _login(keys: dict[str, bytes]) -> Kubernetes | AppRole:
    if "auth" not in keys:
        raise ConfigError("auth= is missing: write auth=kubernetes or auth=approle")
    auth = _choice(keys, "auth", ("kubernetes", "approle"))
    mount = _segments("authmount=", keys.get("authmount", auth))
    if auth == "kubernetes":
        _need(keys, "role", "kubernetes", refused=("approle",))
        return Kubernetes(_text("role=", keys["role"]), _file(keys, "token") or SERVICE_ACCOUNT_TOKEN, mount)
    _need(keys, "approle", "approle", refused=("role", "token"))
    return AppRole(_file(keys, "approle") or b"", mount)


def _need(keys: dict[str, bytes], required: str, auth: str, refused: Collection[str]) -> None:
    for key in refused:
        if key in keys:
            raise ConfigError(f"{key}= has no use with auth={auth}")
    if required not in keys:
        raise ConfigError(f"{required}= is missing, which auth={auth} needs")


def _parse_query(query: str) -> dict[str, bytes]:
    """The query's keys; `+` is a space in it, and what `%` means is decoded once."""
    keys: dict[str, bytes] = {}
    for pair in query.split("&") if query else ():
        if ";" in pair:
            raise ConfigError("its query holds a ; (write %3B)")
        name, _, value = (_decode("the query", part.replace("+", " ")) for part in pair.partition("="))
        key = name.decode("utf-8", "replace")
        if key not in _KEYS:
            named = f": {key}" if _WORD.match(key) else ""
            raise ConfigError(f"its query has an unknown key ({', '.join(_KEYS)} are known){named}")
        if key in keys:
            raise ConfigError(f"{key}= is there twice")
        if not value:
            raise ConfigError(f"{key}= has no value")
        keys[key] = value
    return keys


def _proxy(keys: dict[str, bytes]) -> str | None:
    return proxies.check(keys["proxy"].decode("utf-8", "replace")) if "proxy" in keys else None


def _choice(keys: dict[str, bytes], key: str, values: Collection[str], default: bytes = b"") -> str:
    value = keys.get(key, default).decode("utf-8", "replace")
    if value not in values:
        raise ConfigError(f"{key}= is either {' or '.join(values)}")
    return value


def _file(keys: dict[str, bytes], key: str) -> bytes | None:
    value = keys.get(key)
    if value is not None and b"\0" in value:
        raise ConfigError(f"{key}= holds a NUL, which no path does")
    return value


def _segments(what: str, value: bytes | str) -> str:
    """A path inside Vault. Anything that a client or a server on the way might rewrite is refused."""
    text = value if isinstance(value, str) else _text(what, value)
    if not text:
        raise ConfigError(f"{what} is empty")
    if not text.isprintable() or any(map(str.isspace, text)):
        raise ConfigError(f"{what} holds whitespace or a control character")
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
        raise ConfigError(f"{what} has a % that is no escape (a % itself is %25)")
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), raw)


def _quote(value: bytes) -> str:
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in value)
