"""The grammar of `-creds`, and the checks of the fields that a source holds. No error quotes a field's value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, NamedTuple, Protocol

from publish.domain.errors import ConfigError, CredentialsError, SourceUnavailable
from publish.domain.root import against
from publish.domain.server_url import parse_origin
from publish.domain.vault_url import VaultUrl, parse_vault_url

REQUIRED = ("access_key_id", "secret_access_key")
OPTIONAL = ("session_token", "endpoint", "region")
FIELDS = frozenset((*REQUIRED, *OPTIONAL))
DEFAULT_REGION = "us-east-1"

# Sent in a header, for whose other characters there is no agreed encoding.
_ASCII_FIELDS = ("access_key_id", "session_token")
# A host label (RFC 1123): the region is part of the host name of AWS's regional endpoint.
_REGION = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\Z")
_WORD = re.compile(r"[A-Za-z]{1,16}\Z")


class Credentials(NamedTuple):
    """Keys, and the store they are for. `endpoint` None: AWS's regional endpoint."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None
    endpoint: str | None
    region: str

    def __repr__(self) -> str:
        """Without the keys."""
        return f"Credentials(endpoint={self.endpoint!r}, region={self.region!r})"


class Source(Protocol):
    """One item of `-creds`."""

    @property
    def name(self) -> str:
        """The item as the user wrote it. Contains no secret."""

    def read(self, budget: float) -> Credentials:
        """Its credentials now. A source on the network takes at most `budget` seconds.

        Raises SourceUnavailable if it does not exist on this node, CredentialsError if it is invalid;
        neither message names the source.
        """


class DirectorySpec(NamedTuple):
    """`secret:DIR`, a mounted Kubernetes Secret, or `file:DIR`, a private directory. `path` is absolute."""

    kind: Literal["secret", "file"]
    name: str
    path: bytes


class VaultSpec(NamedTuple):
    """`vault:URL`. Paths in the location are as written."""

    name: str
    location: VaultUrl


SourceSpec = DirectorySpec | VaultSpec


def parse_creds(text: str, cwd: bytes) -> list[SourceSpec]:
    """The items of `-creds` in order. Does not access the sources.

    Bytes that are not UTF-8 are surrogates in `text` (PEP 383); `cwd` is absolute.
    Raises CredentialsError, which names an item by its number because its text may hold a secret.
    """
    return [_parse_item(item, f"-creds item {number}", cwd) for number, item in enumerate(text.split(","), 1)]


def _parse_item(item: str, place: str, cwd: bytes) -> SourceSpec:
    kind, colon, location = item.partition(":")
    if not item:
        raise CredentialsError(f"{place} is empty")
    if not colon:
        raise CredentialsError(f"{place} has no colon (expected secret:DIR, file:DIR or vault:URL)")
    if kind not in {"secret", "file", "vault"}:
        quoted = f": {kind}" if _WORD.match(kind) else ""
        raise CredentialsError(f"{place}: unknown kind (expected secret, file or vault){quoted}")
    if not location:
        raise CredentialsError(f"{place} has no location after {kind}:")
    if kind == "vault":
        try:
            return VaultSpec(item, parse_vault_url(location))
        except ConfigError as fault:
            raise CredentialsError(f"{place} (vault): {fault}") from None
    path = location.encode("utf-8", "surrogateescape")
    # Not normalised: `link/..` is the parent of the link's target.
    path = against(cwd, path)
    return DirectorySpec("secret" if kind == "secret" else "file", item, path)


def parse_credentials(fields: Mapping[str, str]) -> Credentials:
    """Checks the fields. Raises CredentialsError, which names the field."""
    check_fields(fields, REQUIRED, OPTIONAL)
    for field in _ASCII_FIELDS:
        if not fields.get(field, "").isascii():
            raise CredentialsError(f"field contains a character that is not ASCII: {field}")
    endpoint = fields.get("endpoint")
    if endpoint is not None:
        try:
            host = parse_origin(endpoint).host
        except ConfigError as fault:
            raise CredentialsError(f"invalid endpoint (expected http(s)://HOST[:PORT]): {fault}") from None
        # RFC 1123 section 2.1; botocore sends nothing to such a host.
        if "_" in host:
            raise CredentialsError("the host of the endpoint contains an underscore: endpoint")
    region = fields.get("region", DEFAULT_REGION)
    if not _REGION.match(region):
        raise CredentialsError("invalid region (expected 1 to 63 letters, digits and hyphens, not only digits)")
    return Credentials(
        fields["access_key_id"], fields["secret_access_key"], fields.get("session_token"), endpoint, region
    )


def check_fields(fields: Mapping[str, str], required: Collection[str], optional: Collection[str] = ()) -> None:
    """Raises CredentialsError for a field that is unknown, missing or invalid."""
    reject_unknown_fields(fields, (*required, *optional))
    for field in required:
        if field not in fields:
            raise CredentialsError(f"missing field: {field}")
    for field, value in sorted(fields.items()):
        validate_value(field, value)


def reject_unknown_fields(fields: Iterable[str], known: Collection[str]) -> None:
    """Raises CredentialsError, which names the first unknown field in alphabetical order."""
    for field in sorted(fields):
        if field not in known:
            raise CredentialsError(f"unknown field (expected {', '.join(sorted(known))}): {field}")


def validate_value(field: str, value: str) -> None:
    """Raises CredentialsError for a value that is empty or that no request can carry."""
    if not value:
        raise CredentialsError(f"empty field: {field}")
    if any(map(str.isspace, value)):
        raise CredentialsError(f"field contains whitespace: {field}")
    # Control characters, a byte order mark, half a surrogate pair.
    if not value.isprintable():
        raise CredentialsError(f"field contains an unprintable character: {field}")


def resolve_credentials(
    sources: Iterable[Source], remaining: Callable[[], float], enter: Callable[[str], None] | None = None
) -> tuple[str, Credentials]:
    """The name and the credentials of the first source that exists.

    `remaining` returns the seconds that are left. A source may use half of them, so that the next one has
    its turn. `enter` is called with the name of each source before it is read.
    Raises CredentialsError, which names the invalid source, or all of them if none exists.
    """
    unavailable = []
    for source in sources:
        if enter is not None:
            enter(source.name)
        left = remaining()
        if left <= 0:
            raise CredentialsError(f"{source.name}: no time left to read it")
        try:
            return source.name, source.read(left / 2)
        except SourceUnavailable as fault:
            unavailable.append(f"{source.name}: {fault}")
        except CredentialsError as fault:
            raise CredentialsError(f"{source.name}: {fault}") from fault
    raise CredentialsError(f"no credentials found: {'; '.join(unavailable)}")
