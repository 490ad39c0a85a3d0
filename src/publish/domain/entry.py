"""An entry's name and what it says. One text for one value, one value for one text."""

from __future__ import annotations

from publish.domain.errors import ConfigError, FormatError
from publish.domain.light_typing import NamedTuple

MAX_UINT64 = 2**64 - 1

# RFC 4648 section 6 without padding: whole groups of 8 letters, then at most one shorter group of
# 2, 4, 5 or 7 whose last letter has zeros in its unused bits.
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_GROUP_ENDS = frozenset({0, 2, 4, 5, 7})
# int(text, 32) reads the digits 0-9a-v; this decodes four times faster than base64.b32decode.
_AS_DIGITS = bytes.maketrans(_ALPHABET, b"0123456789abcdefghijklmnopqrstuv")
# Where the parts of a name begin: two numbers of 20 digits, then the path.
_STEP_AT, _PATH_AT = 21, 42
# The path of a save has none of these segments, and does not begin with one that is reserved.
_INVALID_SEGMENTS = (b"", b".", b"..")
RESERVED = (b"pub", b".publish")
# Where each execution has a folder of its own.
EXECUTIONS = b"exec"
# C0 and DEL; and those of C1, which terminals act on too, in UTF-8 (ECMA-48, RFC 3629).
_CONTROL_CHARACTERS = bytes((*range(0x20), 0x7F))
_C1_LEAD, _C1 = b"\xc2", tuple(b"\xc2%c" % code for code in range(0x80, 0xA0))


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
        """The entry for a save. Raises FormatError for a number or a path that no name can encode."""
        for what, number in (("epoch", epoch), ("step", step)):
            if not 0 <= number <= MAX_UINT64:
                raise FormatError(f"{what} is not an unsigned 64-bit integer: {number}")
        if not _is_save_path(path):
            raise FormatError(f"invalid path of a save: {to_text(path)}")
        letters = (len(path) * 8 + 4) // 5
        number = int.from_bytes(path, "big") << (letters * 5 - len(path) * 8)
        encoded = bytes(_ALPHABET[number >> place * 5 & 31] for place in reversed(range(letters)))
        return cls(b"%020d-%020d-%s" % (epoch, step, encoded), epoch, step, path)

    @classmethod
    def parse(cls, name: bytes) -> Entry:
        """The entry that `name` encodes. Raises FormatError for every name that `of` never returns."""
        epoch, step, encoded = name[: _STEP_AT - 1], name[_STEP_AT : _PATH_AT - 1], name[_PATH_AT:]
        unused_bits = len(encoded) * 5 % 8
        if not (
            epoch.isdigit()
            and step.isdigit()
            and name[_STEP_AT - 1 : _STEP_AT] == name[_PATH_AT - 1 : _PATH_AT] == b"-"
            and len(encoded) % 8 in _GROUP_ENDS
            and not encoded.translate(None, _ALPHABET)
        ):
            raise FormatError(f"unrecognised entry (move it out of the folder): {to_text(name)}")
        number = int(encoded.translate(_AS_DIGITS) or b"0", 32)
        if number & ((1 << unused_bits) - 1):
            raise FormatError(f"unrecognised entry (move it out of the folder): {to_text(name)}")
        path = (number >> unused_bits).to_bytes(len(encoded) * 5 // 8, "big")
        entry = cls(name, int(epoch), int(step), path)
        if entry.epoch > MAX_UINT64 or entry.step > MAX_UINT64:
            raise FormatError(f"entry encodes a number over 2^64-1: {to_text(name)}")
        if not _is_save_path(path):
            raise FormatError(f"entry encodes an invalid path: {to_text(name)}")
        return entry


def _is_save_path(path: bytes) -> bool:
    segments = path.split(b"/")
    return segments[0] not in RESERVED and b"\0" not in path and not any(each in segments for each in _INVALID_SEGMENTS)


def to_text(text: bytes) -> str:
    """Bytes as text for a message; bytes that are not UTF-8 become surrogates, which the output escapes."""
    return text.decode("utf-8", "surrogateescape")


def has_control_characters(path: bytes) -> bool:
    """Whether a path cannot be printed on one line as it is."""
    if len(path.translate(None, _CONTROL_CHARACTERS)) != len(path):
        return True
    return _C1_LEAD in path and any(character in path for character in _C1)


def validate_save_path(path: bytes) -> None:
    """Raises ConfigError for a path that parses but must not be published (layout.8)."""
    if has_control_characters(path):
        raise ConfigError(f"the path of a save contains a control character: {to_text(path)}")


def join(folder: bytes, name: bytes) -> bytes:
    """The path of what is called `name` in a folder; b"" is the root, or the folder itself."""
    return folder + b"/" + name if folder and name else folder or name


def beside(path: bytes, name: bytes) -> bytes:
    """The path of what is called `name` in the folder that holds `path`."""
    return join(path.rpartition(b"/")[0], name)


def overlap(one: bytes, other: bytes) -> bool:
    """Whether the paths are equal or one contains the other."""
    return one == other or one.startswith(other + b"/") or other.startswith(one + b"/")
