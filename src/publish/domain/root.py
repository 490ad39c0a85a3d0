"""What `-checkpoint` names, and where a save lies in it. Nothing here looks at a disk or a store."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from posixpath import normpath

from publish.domain.entry import to_text
from publish.domain.errors import ConfigError
from publish.domain.light_typing import NamedTuple

_S3 = b"s3://"
# What S3 and the stores like it take.
MIN_BUCKET, MAX_BUCKET = 3, 255
_ALPHANUMERIC = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BUCKET_CHARS = _ALPHANUMERIC + b"._-"
_SCHEME_CHARS = _ALPHANUMERIC + b"+.-"
_SPACE = 0x20
_BAD_PREFIX_BYTES = b"?#\x7f"


class Where(Enum):
    """The kinds of root on which a layout is recognised safely."""

    ANYWHERE = "anywhere"
    DIRECTORY = "on a directory"
    OBJECT_STORE = "on S3"


class PosixRoot(NamedTuple):
    """A directory, by its absolute path with `.`, `..` and doubled slashes taken out."""

    path: bytes

    @property
    def where(self) -> Where:
        """The kind of root, as layouts tell them apart."""
        return Where.DIRECTORY

    def render(self, path: bytes) -> bytes:
        """The absolute path of what lies at `path` below the root."""
        return against(self.path, path) if path else self.path

    def locate(self, save: bytes, cwd: bytes, is_root: Callable[[bytes], bool]) -> bytes:
        """The path of `save` below the root, b"" for the root itself (publish.3).

        `is_root` tells whether an absolute path leads to the root's own directory, so that a
        root behind a link is found from either side. Links below the root are not looked at.
        Raises ConfigError for what is not under the root.
        """
        # Taken for a relative path, a URL would be quoted in full, with any password in it.
        if _is_url(save):
            raise ConfigError(f"the root is a directory and this is not a path in it: {_refused(save)}")
        absolute = absolutize(save, cwd)
        for ancestor in (self.path, *filter(is_root, _ancestors(absolute))):
            if absolute == ancestor:
                return b""
            inside = ancestor.rstrip(b"/") + b"/"
            if absolute.startswith(inside):
                return absolute[len(inside) :]
        against = "" if save.startswith(b"/") else f" (which is {to_text(absolute)})"
        raise ConfigError(f"not under the root {to_text(self.path)}: {_refused(save)}{against}")


class S3Root(NamedTuple):
    """A prefix in a bucket; keys below it are `prefix`, a slash and a path."""

    bucket: str
    prefix: str

    @property
    def where(self) -> Where:
        """The kind of root, as layouts tell them apart."""
        return Where.OBJECT_STORE

    def render(self, path: bytes) -> bytes:
        """The `s3://` URL of what lies at `path` below the root."""
        url = f"s3://{self.bucket}/{self.prefix}".encode()
        return url + b"/" + path if path else url

    def locate(self, save: bytes) -> bytes:
        """The path of `save`, an `s3://` URL taken literally, below the root; b"" for the root."""
        url = save.rstrip(b"/")
        root = self.render(b"")
        if url == root:
            return b""
        if not url.startswith(root + b"/"):
            raise ConfigError(f"not an s3:// URL under the root {to_text(root)}: {_refused(save)}")
        try:
            url.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"a key on S3 is UTF-8 and this is not: {_refused(save)}") from error
        return url[len(root) + 1 :]


Root = PosixRoot | S3Root


def is_s3_url(text: bytes) -> bool:
    """Whether `-checkpoint` means a prefix in a bucket (root.2)."""
    return text.startswith(_S3)


def is_directory_path(text: bytes) -> bool:
    """Whether `-checkpoint` means a directory: a colon in the first element looks like a URL (root.3)."""
    return text.startswith(b"/") or b":" not in text.split(b"/", 1)[0]


def unknown_kind(text: bytes) -> ConfigError:
    """The error for a `-checkpoint` that names a root of no kind."""
    return ConfigError(
        "the root is neither a directory nor s3://BUCKET/PREFIX "
        f"(write ./ in front if a path is meant): {_refused(text)}"
    )


def parse_directory(text: bytes, cwd: bytes, is_same: Callable[[bytes, bytes], bool]) -> PosixRoot:
    """The directory that `-checkpoint` names (root.3, root.4). Raises ConfigError.

    `is_same` tells whether two absolute paths lead to one directory: after a link, `..` is not what
    its text says, and a root in the wrong place would look like a job that has not begun.
    """
    if not is_directory_path(text):
        raise unknown_kind(text)
    path = absolutize(text, cwd)
    as_given = against(cwd, text)
    if b".." in text.split(b"/") and not is_same(path, as_given):
        return PosixRoot(b"/" + b"/".join(part for part in as_given.split(b"/") if part not in (b"", b".")))
    return PosixRoot(path)


def parse_s3_url(text: bytes) -> S3Root:
    """The prefix that `-checkpoint` names (root.2). Raises ConfigError."""
    bucket, _, prefix = text.removeprefix(_S3).partition(b"/")
    prefix = prefix.rstrip(b"/")
    if not MIN_BUCKET <= len(bucket) <= MAX_BUCKET or bucket.strip(_BUCKET_CHARS):
        raise ConfigError(f"the bucket of an S3 root is 3 to 255 of A-Z a-z 0-9 . _ -: {_refused(text)}")
    if not prefix:
        raise ConfigError(f"an S3 root needs a prefix, s3://BUCKET/PREFIX: {_refused(text)}")
    if any(part in (b"", b".", b"..") for part in prefix.split(b"/")) or _has_bad_prefix_char(prefix):
        raise ConfigError(
            "the prefix of an S3 root has no empty, . or .. segment, "
            f"no ?, no # and no control character: {_refused(text)}"
        )
    try:
        return S3Root(bucket.decode(), prefix.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"the prefix of an S3 root is UTF-8: {_refused(text)}") from error


def _has_bad_prefix_char(prefix: bytes) -> bool:
    return any(byte < _SPACE or byte in _BAD_PREFIX_BYTES for byte in prefix)


def _is_url(text: bytes) -> bool:
    """Whether the text starts with a URL's scheme and `://` (RFC 3986 section 3.1)."""
    scheme, separator, _ = text.partition(b"://")
    return bool(separator) and scheme[:1].isalpha() and not scheme.strip(_SCHEME_CHARS)


def _refused(text: bytes) -> str:
    return without_userinfo(to_text(text))


def without_userinfo(text: str) -> str:
    """What was refused, for a message: without anything that may be the userinfo of a URL (cli.9).

    Up to the last @: an unquoted slash or space in a password does not end it.
    """
    start, end = text.find("://"), text.rfind("@")
    return text[: start + 3] + text[end + 1 :] if 0 <= start < end else text


def absolutize(path: bytes, cwd: bytes) -> bytes:
    """`path` against the absolute `cwd`, with `.`, `..` and doubled slashes taken out as text."""
    return b"/" + normpath(against(cwd, path)).lstrip(b"/")


def against(directory: bytes, path: bytes) -> bytes:
    """A path as it is seen from an absolute directory."""
    return path if path.startswith(b"/") else directory.rstrip(b"/") + b"/" + path


def _ancestors(path: bytes) -> list[bytes]:
    """`path` and what is above it, outermost first."""
    parts = path.strip(b"/").split(b"/")
    return [b"/", *(b"/" + b"/".join(parts[: end + 1]) for end in range(len(parts)) if path != b"/")]
