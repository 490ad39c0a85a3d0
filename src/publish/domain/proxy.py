"""What a proxy URL may be. A password in one would sit in the job script, so userinfo is refused."""

from __future__ import annotations

from publish.domain.errors import ConfigError
from publish.domain.server_url import parse_origin


def check(url: str) -> str:
    """The URL of a proxy, fit to be used (P2). Raises ConfigError, whose text quotes nothing of it."""
    try:
        return str(parse_origin(url))
    except ConfigError as fault:
        raise ConfigError(f"a proxy is http://HOST[:PORT] or https://HOST[:PORT] and nothing more: {fault}") from None
