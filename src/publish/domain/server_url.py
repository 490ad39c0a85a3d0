"""`http(s)://HOST[:PORT]`: the part of a URL that says which server. A host or port that cannot be is refused.

Nothing of what was refused is ever quoted: userinfo may stand in it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from publish.domain.errors import ConfigError

_URL = re.compile(r"(https?)://([^/?#]*)(.*)\Z", re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([1-9][0-9]{0,4}))?\Z")
# RFC 1123 section 2.1; the underscore is no host's, yet container networks use it.
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\.?\Z){_LABEL}(?:\.{_LABEL})*\.?\Z")
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}\Z")
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?[0-9]+\.?\Z")
_IPV6_GROUP = re.compile(r"[0-9A-Fa-f]{1,4}\Z")
_IPV6_GROUPS = 8
_MAX_PORT = 65535


class Origin(NamedTuple):
    """A server. `host` is as it stands in a URL, so an IPv6 address has its brackets; port None: the scheme's own."""

    scheme: str
    host: str
    port: int | None

    def __str__(self) -> str:
        """The URL, without a slash at its end."""
        return f"{self.scheme}://{self.host}" + ("" if self.port is None else f":{self.port}")

    @classmethod
    def split(cls, url: str) -> tuple[Origin, str]:
        """The server of `url`, and all that follows it. Raises ConfigError."""
        match = _URL.match(url)
        if match is None:
            raise ConfigError("it does not start with http:// or https://")
        scheme, authority, rest = match.groups()
        if "@" in authority:
            raise ConfigError("it has userinfo")
        split = _HOST_AND_PORT.match(authority)
        if split is None:
            raise ConfigError("its host or port cannot be one")
        host, port = split[1], None if split[2] is None else int(split[2])
        if not _is_host(host):
            raise ConfigError("its host cannot be one")
        if port is not None and port > _MAX_PORT:
            raise ConfigError(f"its port is over {_MAX_PORT}")
        return cls(scheme, host, port), rest


def parse_origin(url: str) -> Origin:
    """The server that `url` names with nothing behind it. Raises ConfigError."""
    origin, rest = Origin.split(url)
    if rest:
        raise ConfigError({"/": "it has a path", "?": "it has a query", "#": "it has a fragment"}[rest[0]])
    return origin


def _is_host(text: str) -> bool:
    if text.startswith("["):
        return _is_ipv6(text[1:-1])
    if _ENDS_IN_NUMBER.match(text):
        return bool(_IPV4.match(text))
    return bool(_NAME.match(text))


def _is_ipv6(text: str) -> bool:
    """RFC 4291 section 2.2, without a zone."""
    head, gap, tail = text.partition("::")
    groups = [*(head.split(":") if head else []), *(tail.split(":") if tail else [])]
    count = len(groups)
    if groups and _IPV4.match(groups[-1]) and text.endswith(groups[-1]):
        count += 1
        groups.pop()
    if not all(map(_IPV6_GROUP.match, groups)):
        return False
    return count < _IPV6_GROUPS if gap else count == _IPV6_GROUPS
