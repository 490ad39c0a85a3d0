"""An entry's name and what it says. One text for one value, one value for one text."""

from __future__ import annotations

import re
from typing import NamedTuple

from publish.domain.errors import ConfigError, FormatError

MAX_UINT64 = 2**64 - 1

# RFC 4648 section 6 without padding: whole groups of 8 letters, then at most one shorter
# group of 2, 4, 5 or 7 whose last letter has only zeros in the bits that fill it up.
_NAME = re.compile(
    rb"([0-9]{20})-([0-9]{20})-"
    rb"((?:[A-Z2-7]{8})*"
    rb"(?:[A-Z2-7][AEIMQUY4]|[A-Z2-7]{3}[AQ]|[A-Z2-7]{4}[ACEGIKMOQSUWY246]|[A-Z2-7]{6}[AIQY])?)\Z"
)
# int(text, 32) reads the digits 0-9a-v; decoding so is four times faster than base64's way.
_AS_DIGITS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghijklmnopqrstuv")
_BAD_SEGMENT = re.compile(rb"(?:\A|/)(?:\.{0,2})(?:/|\Z)|\0|\Apub(?:/|\Z)")
_CONTROL_CHARS = re.compile(rb"[\x00-\x1f\x7f]")


class Entry(NamedTuple):
    """One publication. Entries compare as their names do, byte by byte, which is (epoch, step) first.

    `name` is the file's name in `pub/`, `path` the save's path relative to the root.
    """

    name: bytes
    epoch: int
    step: int
    path: bytes

    @classmethod
    def of(cls, epoch: int, step: int, path: bytes) -> Entry:
        """The entry for a save. Raises FormatError where no name can say this."""
        for what, number in (("epoch", epoch), ("step", step)):
            if not 0 <= number <= MAX_UINT64:
                raise FormatError(f"{what} is not an unsigned 64-bit number: {number}")
        if _BAD_SEGMENT.search(path):
            raise FormatError(f"not the path of a save below the root: {to_text(path)}")
        from base64 import b32encode  # noqa: PLC0415  (start-up: who resolves makes no name)

        encoded = b32encode(path).rstrip(b"=")
        return cls(b"%020d-%020d-%s" % (epoch, step, encoded), epoch, step, path)

    @classmethod
    def parse(cls, name: bytes) -> Entry:
        """The entry that `name` says. Raises FormatError for every text that `of` never gives."""
        match = _NAME.match(name)
        if match is None:
            raise FormatError(f"not the name of a publication: {to_text(name)}")
        epoch, step, encoded = match.groups()
        size = len(encoded) * 5 // 8
        number = int(encoded.translate(_AS_DIGITS) or b"0", 32) >> len(encoded) * 5 % 8
        path = number.to_bytes(size, "big")
        entry = cls(name, int(epoch), int(step), path)
        if entry.epoch > MAX_UINT64 or entry.step > MAX_UINT64:
            raise FormatError(f"a number in the name of a publication is over 2^64-1: {to_text(name)}")
        if _BAD_SEGMENT.search(path):
            raise FormatError(f"the name of a publication says a path that no save has: {to_text(name)}")
        return entry


def to_text(text: bytes) -> str:
    """Bytes as text for a message; what is not UTF-8 survives as surrogates until it is printed."""
    return text.decode("utf-8", "surrogateescape")


def validate_save_path(path: bytes) -> None:
    """Raises ConfigError for paths that parse but must never be written (L8)."""
    if path == b"prune" or path.startswith(b"prune/"):
        raise ConfigError(f"the folder prune is publish's own and holds no save: {to_text(path)}")
    if _CONTROL_CHARS.search(path):
        raise ConfigError(f"a save's path may not hold a control character: {to_text(path)}")


def overlap(one: bytes, other: bytes) -> bool:
    """Whether one path is the other, lies inside it or around it."""
    return one == other or one.startswith(other + b"/") or other.startswith(one + b"/")
