"""What `-creds` says and what a source must answer. No text made here holds a field's value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from publish.domain.errors import ConfigError, CredentialsError, SourceUnavailable
from publish.domain.server_url import parse_origin
from publish.domain.vault_url import VaultUrl, parse_vault_url

REQUIRED = ("access_key_id", "secret_access_key")
OPTIONAL = ("session_token", "endpoint", "region")
FIELDS = frozenset((*REQUIRED, *OPTIONAL))
DEFAULT_REGION = "us-east-1"

# These go out in a header, which has no agreed way to write anything else.
_ASCII_FIELDS = ("access_key_id", "session_token")
# A host label: a region is a part of the name of AWS's regional endpoint.
_REGION = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\Z")
_WORD = re.compile(r"[A-Za-z]{1,16}\Z")


class Credentials(NamedTuple):
    """What an S3 store is reached with. `endpoint` None: AWS's regional endpoint."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None
    endpoint: str | None
    region: str

    def __repr__(self) -> str:
        """Says where, never with what (F9)."""
        return f"Credentials(endpoint={self.endpoint!r}, region={self.region!r})"


class Source(Protocol):
    """One item of `-creds`."""

    @property
    def name(self) -> str:
        """The item as the user wrote it. It holds no secret."""

    def read(self, budget: float) -> Credentials:
        """What it holds now, within `budget` seconds where that is in its hands.

        Raises SourceUnavailable if it is not on this node, CredentialsError if it is there and wrong;
        neither text names the source.
        """


class SecretItem(NamedTuple):
    """`secret:DIR`, a mounted Kubernetes Secret. `path` is absolute."""

    name: str
    path: bytes


class FileItem(NamedTuple):
    """`file:DIR`, a private directory. `path` is absolute."""

    name: str
    path: bytes


class VaultItem(NamedTuple):
    """`vault:URL`. Paths in the location are as written."""

    name: str
    location: VaultUrl


Item = SecretItem | FileItem | VaultItem


def parse_creds(text: str, cwd: bytes) -> list[Item]:
    """The items of `-creds` in their order (C1, C6, C7). Looks at nothing but the text.

    What is not UTF-8 in `text` stands in it as surrogates (PEP 383); `cwd` is absolute.
    Raises CredentialsError, naming the item by its place: it may hold what must not be shown.
    """
    items = text.split(",")
    return [_parse_item(item, f"item {place} of the list", cwd) for place, item in enumerate(items, 1)]


def _parse_item(item: str, place: str, cwd: bytes) -> Item:
    kind, colon, location = item.partition(":")
    if not item:
        raise CredentialsError(f"{place} is empty")
    if not colon:
        raise CredentialsError(f"{place} has no colon: write secret:DIR, file:DIR or vault:URL")
    if kind not in {"secret", "file", "vault"}:
        named = f": {kind}" if _WORD.match(kind) else ""
        raise CredentialsError(f"{place} is of an unknown kind (secret, file and vault are known){named}")
    if not location:
        raise CredentialsError(f"{place} has no location after {kind}:")
    if kind == "vault":
        try:
            return VaultItem(item, parse_vault_url(location))
        except ConfigError as fault:
            raise CredentialsError(f"{place} (vault): {fault}") from None
    path = location.encode("utf-8", "surrogateescape")
    # Not normalised: `link/..` is where the link leads, not where it stands.
    path = path if path.startswith(b"/") else cwd.rstrip(b"/") + b"/" + path
    return SecretItem(item, path) if kind == "secret" else FileItem(item, path)


def parse_credentials(fields: Mapping[str, str]) -> Credentials:
    """The credentials that these fields make (C2, C3). Raises CredentialsError, naming the field."""
    check_fields(fields, REQUIRED, OPTIONAL)
    for field in _ASCII_FIELDS:
        if not fields.get(field, "").isascii():
            raise CredentialsError(f"the field holds a character that is not ASCII: {field}")
    endpoint = fields.get("endpoint")
    if endpoint is not None:
        try:
            host = parse_origin(endpoint).host
        except ConfigError as fault:
            raise CredentialsError(f"the endpoint is http(s)://HOST[:PORT] and nothing more: {fault}") from None
        # No host name has one (RFC 1123 section 2.1), and the S3 library sends nothing to it.
        if "_" in host:
            raise CredentialsError("the endpoint's host may not have an underscore: endpoint")
    region = fields.get("region", DEFAULT_REGION)
    if not _REGION.match(region):
        raise CredentialsError("the region is letters, digits and hyphens, at most 63 and not digits alone")
    return Credentials(
        fields["access_key_id"], fields["secret_access_key"], fields.get("session_token"), endpoint, region
    )


def check_fields(fields: Mapping[str, str], required: Collection[str], optional: Collection[str] = ()) -> None:
    """Raises CredentialsError for an unknown field, one that is missing, and a value that none may have."""
    reject_unknown_fields(fields, (*required, *optional))
    for field in required:
        if field not in fields:
            raise CredentialsError(f"the field is missing: {field}")
    for field, value in sorted(fields.items()):
        validate_value(field, value)


def reject_unknown_fields(fields: Iterable[str], known: Collection[str]) -> None:
    """Raises CredentialsError naming the first field, in their order, that is none of the known."""
    for field in sorted(fields):
        if field not in known:
            raise CredentialsError(f"not a field ({', '.join(known)} are): {field}")


def validate_value(field: str, value: str) -> None:
    """Raises CredentialsError for a value that is empty or holds what no value may."""
    if not value:
        raise CredentialsError(f"the field is empty: {field}")
    if any(map(str.isspace, value)):
        raise CredentialsError(f"the field holds whitespace: {field}")
    # Control characters, a byte order mark, half a surrogate pair: no request can carry them.
    if not value.isprintable():
        raise CredentialsError(f"the field holds a character that cannot be printed: {field}")


def resolve_credentials(
    sources: Iterable[Source], remaining: Callable[[], float], enter: Callable[[str], None] | None = None
) -> tuple[str, Credentials]:
    """The name of the first source that answers, and its answer (C4).

    `remaining` tells the seconds left for all; each source may take half of what is left when its
    turn comes, so that the next one has its own (V4). `enter` is told each name at its turn.
    Raises CredentialsError naming the source that is wrong, or, when none answered, each and why.
    """
    absent = []
    for source in sources:
        if enter is not None:
            enter(source.name)
        left = remaining()
        if left <= 0:
            raise CredentialsError(f"{source.name}: no time was left to ask it")
        try:
            return source.name, source.read(left / 2)
        except SourceUnavailable as fault:
            absent.append(f"{source.name}: {fault}")
        except CredentialsError as fault:
            raise CredentialsError(f"{source.name}: {fault}") from fault
    raise CredentialsError(f"no source answered: {'; '.join(absent)}")
