"""What `-checkpoint` names, and where a save lies in it. Nothing here looks at a disk or a store."""

from __future__ import annotations

import re
from collections.abc import Callable
from posixpath import normpath
from typing import NamedTuple

from publish.domain.entry import to_text
from publish.domain.errors import ConfigError

_BUCKET = re.compile(rb"[A-Za-z0-9._-]{3,255}\Z")
_BAD_PREFIX = re.compile(rb"(?:\A|/)\.{0,2}(?:/|\Z)|[?#\x00-\x1f\x7f]")

_URL = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://")
# Up to the last @: who forgets to quote a slash or a space in a password has it stand there as it is.
_USERINFO = re.compile(rb"://.*@", re.DOTALL)


class PosixRoot(NamedTuple):
    """A directory, by its absolute path with `.`, `..` and doubled slashes taken out."""

    path: bytes

    def render(self, path: bytes) -> bytes:
        """The absolute path of what lies at `path` below the root."""
        return _join(self.path, path) if path else self.path

    def locate(self, save: bytes, cwd: bytes, is_root: Callable[[bytes], bool]) -> bytes:
        """The path of `save` below the root, b"" for the root itself (publish.3).

        `is_root` tells whether an absolute path leads to the root's own directory, so that a
        root behind a link is found from either side. Links below the root are not looked at.
        Raises ConfigError for what is not under the root.
        """
        # Any URL: taken for a relative path it would be quoted, with a password in it, as what is not there.
        if _URL.match(save):
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

    def render(self, path: bytes) -> bytes:
        """The `s3://` URL of what lies at `path` below the root."""
        url = f"s3://{self.bucket}/{self.prefix}".encode()
        return url + b"/" + path if path else url

    def locate(self, save: bytes, cwd: bytes, is_root: Callable[[bytes], bool]) -> bytes:  # noqa: ARG002  (a URL stands alone)
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


def parse_root(text: bytes, cwd: bytes, is_same: Callable[[bytes, bytes], bool]) -> Root:
    """What `-checkpoint` means (R2 to R4). Raises ConfigError.

    `is_same` tells whether two absolute paths lead to one directory: after a link, `..` is not what
    its text says, and a root in the wrong place would look like a job that has not begun.
    """
    if text.startswith(b"s3://"):
        return _parse_s3(text)
    if not text.startswith(b"/") and b":" in text.split(b"/", 1)[0]:
        raise ConfigError(
            "the root is neither a directory nor s3://BUCKET/PREFIX "
            f"(write ./ in front if a path is meant): {_refused(text)}"
        )
    path = absolutize(text, cwd)
    as_given = _join(cwd, text)
    if b".." in text.split(b"/") and not is_same(path, as_given):
        return PosixRoot(b"/" + b"/".join(part for part in as_given.split(b"/") if part not in (b"", b".")))
    return PosixRoot(path)


def _parse_s3(text: bytes) -> S3Root:
    bucket, _, prefix = text.removeprefix(b"s3://").partition(b"/")
    prefix = prefix.rstrip(b"/")
    if not _BUCKET.match(bucket):
        raise ConfigError(f"the bucket of an S3 root is 3 to 255 of A-Z a-z 0-9 . _ -: {_refused(text)}")
    if _BAD_PREFIX.search(prefix):
        raise ConfigError(
            "the prefix of an S3 root is not empty and has no empty, . or .. segment, "
            f"no ?, no # and no control character: {_refused(text)}"
        )
    try:
        return S3Root(bucket.decode(), prefix.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"the prefix of an S3 root is UTF-8: {_refused(text)}") from error


def _refused(text: bytes) -> str:
    """What was refused, for a message: without all that may be the userinfo of a URL (F9)."""
    return to_text(_USERINFO.sub(b"://", text))


def absolutize(path: bytes, cwd: bytes) -> bytes:
    """`path` against the absolute `cwd`, with `.`, `..` and doubled slashes taken out as text."""
    return b"/" + normpath(_join(cwd, path)).lstrip(b"/")


def _join(directory: bytes, path: bytes) -> bytes:
    return path if path.startswith(b"/") else directory.rstrip(b"/") + b"/" + path


def _ancestors(path: bytes) -> list[bytes]:
    """`path` and what is above it, outermost first."""
    parts = path.strip(b"/").split(b"/")
    return [b"/", *(b"/" + b"/".join(parts[: end + 1]) for end in range(len(parts)) if path != b"/")]
