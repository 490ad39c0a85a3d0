"""A store whose listings are written otherwise than its own: what `encoding-type=url` means to other stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote_plus, urlencode
from xml.etree import ElementTree as ET

from tests.support.fault_proxy import Asked, Exchange, FaultProxy, Reply
from tests.support.s3_roots import wire_to
from tests.support.servers import S3Server

# What Go's url.PathEscape leaves as it is, and a slash.
_UNESCAPED_IN_PATHS = "/$&+,:;=@~"


def as_aws(key: str) -> str:
    """A blank as `+`, a plus as `%2B`."""
    return quote_plus(key, safe="/")


def as_path(key: str) -> str:
    """A blank as `%20`, a plus as it is."""
    return quote(key, safe=_UNESCAPED_IN_PATHS)


def as_seaweedfs(key: str) -> str:
    """Folders otherwise than the name in them (SeaweedFS 4.48)."""
    folder, slash, name = key.rpartition("/")
    return quote(folder) + slash + quote_plus(name)


def without_prefix(_: str) -> None:
    return None


class Dialect(NamedTuple):
    """`key` and `prefix` write what they are given; a prefix may be left out. `declared`: with an EncodingType.

    `twice`: a page holds everything on it twice.
    """

    key: Callable[[str], str]
    prefix: Callable[[str], str | None]
    declared: bool = True
    etags: bool = True
    token_moves: bool = True
    twice: bool = False


DIALECTS = {
    "aws": Dialect(as_aws, as_aws),
    "keys encoded and prefix raw": Dialect(quote, str),
    "blank as %20 and as plus": Dialect(as_seaweedfs, str),
    "blank as %20": Dialect(quote, quote),
    "blank as %20 and plus as it is": Dialect(as_path, as_path),
    "no encoding": Dialect(str, str, declared=False),
    "no encoding, but declared": Dialect(str, str),
    "prefix absent": Dialect(as_aws, without_prefix),
    "no etag": Dialect(as_aws, as_aws, etags=False),
    "everything twice": Dialect(as_aws, as_aws, twice=True),
}
STUCK = Dialect(as_aws, as_aws, token_moves=False)


@contextmanager
def dialect_proxy(server: S3Server, dialect: Dialect) -> Iterator[FaultProxy]:
    """A wire to `server`, which speaks the dialect."""
    with wire_to(server) as wire:
        wire.spoil_all("GET", lambda exchange: exchange.answer(_rewrite(exchange, dialect)), part="list-type=2")
        if not dialect.etags:
            wire.spoil_all("GET", _without_etag)
            wire.spoil_all("HEAD", _without_etag)
        yield wire


def _without_etag(exchange: Exchange) -> None:
    reply = exchange.forward()
    exchange.answer(reply._replace(headers=[(name, value) for name, value in reply.headers if name.lower() != "etag"]))


def _rewrite(exchange: Exchange, dialect: Dialect) -> Reply:
    asked = exchange.asked
    reply = exchange.forward(asked if dialect.token_moves else _first_page(exchange))
    if reply.status != 200:
        return reply
    root = ET.fromstring(reply.body)
    namespace = root.tag.rpartition("}")[0] + "}" if root.tag.startswith("{") else ""
    for key in root.iterfind(f"{namespace}Contents/{namespace}Key"):
        key.text = dialect.key(unquote_plus(key.text or ""))
    for prefix in root.iterfind(f"{namespace}CommonPrefixes/{namespace}Prefix"):
        prefix.text = dialect.key(unquote_plus(prefix.text or ""))
    _set(root, f"{namespace}Prefix", dialect.prefix(asked.query["prefix"]))
    _set(root, f"{namespace}EncodingType", "url" if dialect.declared else None)
    if not dialect.etags:
        for item in root.iterfind(f"{namespace}Contents"):
            _set(item, f"{namespace}ETag", None)
    if dialect.twice:
        for item in [*root.iterfind(f"{namespace}Contents"), *root.iterfind(f"{namespace}CommonPrefixes")]:
            root.append(deepcopy(item))
    if not dialect.token_moves:
        _set(root, f"{namespace}IsTruncated", "true")
        _set(root, f"{namespace}NextContinuationToken", "always-this")
    return Reply(200, [("Content-Type", "application/xml")], ET.tostring(root, "utf-8"))


def _first_page(exchange: Exchange) -> Asked:
    asked = exchange.asked
    query = {name: value for name, value in asked.query.items() if name != "continuation-token"}
    target = f"{asked.path}?{urlencode(query, quote_via=quote)}"
    return exchange.resign(asked._replace(target=target))


def _set(parent: ET.Element, name: str, text: str | None) -> None:
    for child in parent.findall(name):
        parent.remove(child)
    if text is not None:
        ET.SubElement(parent, name).text = text
