"""The server of a URL: `http(s)://HOST[:PORT]`.

No error quotes the URL: it may hold a password.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from publish.domain.errors import ConfigError

_URL = re.compile(r"(https?)://([^/?#]*)(.*)\Z", re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([1-9][0-9]{0,4}))?\Z")
# RFC 1123 section 2.1, and the underscore, which container networks use in host names.
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\.?\Z){_LABEL}(?:\.{_LABEL})*\.?\Z")
# A host that ends in a number is an IPv4 address or invalid (WHATWG URL, "host parsing").
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?[0-9]+\.?\Z")
_MAX_PORT = 65535


class Origin(NamedTuple):
    """A server. An IPv6 `host` has its brackets; `port` None is the scheme's default."""

    scheme: str
    host: str
    port: int | None

    def __str__(self) -> str:
        """The URL, without a trailing slash."""
        return f"{self.scheme}://{self.host}" + ("" if self.port is None else f":{self.port}")

    @classmethod
    def split(cls, url: str) -> tuple[Origin, str]:
        """The server of `url`, and the rest of it. Raises ConfigError."""
        match = _URL.match(url)
        if match is None:
            raise ConfigError("must start with http:// or https://")
        scheme, authority, rest = match.groups()
        if "@" in authority:
            raise ConfigError("must not contain a user name or password")
        split = _HOST_AND_PORT.match(authority)
        if split is None:
            raise ConfigError("invalid host or port")
        host, port = split[1], None if split[2] is None else int(split[2])
        if not _is_host(host):
            raise ConfigError("invalid host")
        if port is not None and port > _MAX_PORT:
            raise ConfigError(f"port over {_MAX_PORT}")
        return cls(scheme, host, port), rest


def plaintext_risk(origin: Origin, risk: str) -> str | None:
    """A note for the user if requests cross a network unencrypted; `risk` says what an attacker on it can do."""
    if origin.scheme == "https" or _is_loopback(origin.host):
        return None
    return f"the connection to {origin} is not encrypted: an attacker on the network can {risk} (use https)"


def _is_loopback(host: str) -> bool:
    # RFC 6761 section 6.3.
    if host.lower().removesuffix(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def parse_origin(url: str) -> Origin:
    """The server of a URL that has nothing after it. Raises ConfigError."""
    origin, rest = Origin.split(url)
    if rest:
        part = {"/": "path", "?": "query", "#": "fragment"}[rest[0]]
        raise ConfigError(f"must not have a {part}")
    return origin


def parse_proxy_url(url: str) -> str:
    """The URL of a proxy. A password in it would stand in the job script, so it is refused. Raises ConfigError."""
    try:
        return str(parse_origin(url))
    except ConfigError as fault:
        raise ConfigError(f"invalid proxy URL (expected http://HOST[:PORT] or https://HOST[:PORT]): {fault}") from None


def _is_host(text: str) -> bool:
    if text.startswith("["):
        return _is_address(IPv6Address, text[1:-1])
    if _ENDS_IN_NUMBER.match(text):
        return _is_address(IPv4Address, text)
    return bool(_NAME.match(text))


def _is_address(kind: type[IPv4Address | IPv6Address], text: str) -> bool:
    # A zone (RFC 6874) names an interface of one machine, so no certificate and no `Host` holds one.
    if "%" in text:
        return False
    try:
        kind(text)
    except ValueError:
        return False
    return True
