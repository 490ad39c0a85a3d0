"""The codec between an entry and its name, which is a bijection."""

from __future__ import annotations

import re
from typing import NamedTuple

from publish.domain.errors import ConfigError, FormatError

MAX_UINT64 = 2**64 - 1

# RFC 4648 section 6 without padding: whole groups of 8 letters, then at most one shorter
# group of 2, 4, 5 or 7 whose last letter has zeros in its unused bits.
_NAME = re.compile(
    rb"([0-9]{20})-([0-9]{20})-"
    rb"((?:[A-Z2-7]{8})*"
    rb"(?:[A-Z2-7][AEIMQUY4]|[A-Z2-7]{3}[AQ]|[A-Z2-7]{4}[ACEGIKMOQSUWY246]|[A-Z2-7]{6}[AIQY])?)\Z"
)
# int(text, 32) reads the digits 0-9a-v; this decodes four times faster than base64.b32decode.
_AS_DIGITS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghijklmnopqrstuv")
_BAD_SEGMENT = re.compile(rb"(?:\A|/)(?:\.{0,2})(?:/|\Z)|\0|\Apub(?:/|\Z)")
_CONTROL_CHARS = re.compile(rb"[\x00-\x1f\x7f]")


class Entry(NamedTuple):
    """One publication. Entries sort as their names do, byte by byte: by epoch, then step, then path.

    `name` is the file name in `pub/`, `path` the save's path relative to the root.
    """

    name: bytes
    epoch: int
    step: int
    path: bytes

    @classmethod
    def of(cls, epoch: int, step: int, path: bytes) -> Entry:
        """The entry for a save. Raises FormatError for a number or a path that no name can encode."""
        for what, number in (("epoch", epoch), ("step", step)):
            if not 0 <= number <= MAX_UINT64:
                raise FormatError(f"{what} is not an unsigned 64-bit integer: {number}")
        if _BAD_SEGMENT.search(path):
            raise FormatError(f"invalid path of a save: {to_text(path)}")
        from base64 import b32encode  # noqa: PLC0415  (start-up: resolve never encodes)

        encoded = b32encode(path).rstrip(b"=")
        return cls(b"%020d-%020d-%s" % (epoch, step, encoded), epoch, step, path)

    @classmethod
    def parse(cls, name: bytes) -> Entry:
        """The entry that `name` encodes. Raises FormatError for every name that `of` never returns."""
        match = _NAME.match(name)
        if match is None:
            raise FormatError(f"unrecognised entry (move it out of the folder): {to_text(name)}")
        epoch, step, encoded = match.groups()
        size = len(encoded) * 5 // 8
        number = int(encoded.translate(_AS_DIGITS) or b"0", 32) >> len(encoded) * 5 % 8
        path = number.to_bytes(size, "big")
        entry = cls(name, int(epoch), int(step), path)
        if entry.epoch > MAX_UINT64 or entry.step > MAX_UINT64:
            raise FormatError(f"entry encodes a number over 2^64-1: {to_text(name)}")
        if _BAD_SEGMENT.search(path):
            raise FormatError(f"entry encodes an invalid path: {to_text(name)}")
        return entry


def to_text(text: bytes) -> str:
    """Bytes as text for a message; bytes that are not UTF-8 become surrogates, which the output escapes."""
    return text.decode("utf-8", "surrogateescape")


def validate_save_path(path: bytes) -> None:
    """Raises ConfigError for a path that parses but must not be published (L8)."""
    if path == b"prune" or path.startswith(b"prune/"):
        raise ConfigError(f"prune/ is reserved for publish and cannot hold a save: {to_text(path)}")
    if _CONTROL_CHARS.search(path):
        raise ConfigError(f"the path of a save contains a control character: {to_text(path)}")


def overlap(one: bytes, other: bytes) -> bool:
    """Whether the paths are equal or one contains the other."""
    return one == other or one.startswith(other + b"/") or other.startswith(one + b"/")
