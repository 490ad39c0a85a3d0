"""What a flag's or a variable's text may be: exactly one meaning, or a refusal that says what is asked for."""

from __future__ import annotations

import re

from publish.domain.entry import MAX_UINT64
from publish.domain.errors import UsageError

# The words of Go's strconv.ParseBool.
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})

# Go's time.ParseDuration; a micro sign is U+00B5 or the Greek letter U+03BC.
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_LONGEST = 2**63 - 1
# int() refuses over 4,300 digits; anything of this length has overflown long before.
_MOST_DIGITS = 20
_UNSIGNED = re.compile(r"[0-9]+\Z")
# Below 0x20 and DEL, as in a save's path; the other segments that name no folder of their own.
_BAD_ATTEMPT = re.compile(r"\.{0,2}\Z|.*[/\x00-\x1f\x7f]", re.DOTALL)


def boolean(text: str) -> bool:
    """One of Go's words for true and false. Raises UsageError."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise UsageError(f"neither true nor false: {text}")


def unsigned(text: str) -> int:
    """An unsigned 64-bit decimal; leading zeros do not matter. Raises UsageError."""
    if not _UNSIGNED.match(text):
        raise UsageError(f"not an unsigned decimal number: {text}")
    digits = text.lstrip("0")
    if len(digits) > _MOST_DIGITS or int(digits or "0") > MAX_UINT64:
        raise UsageError(f"over 2^64-1: {text}")
    return int(digits or "0")


def positive(text: str) -> int:
    """An unsigned decimal of at least 1. Raises UsageError."""
    number = unsigned(text)
    if number == 0:
        raise UsageError(f"must be at least 1: {text}")
    return number


def duration(text: str) -> float:
    """A Go duration above zero, such as 300ms or 1h30m, in seconds. Raises UsageError."""
    rest = text.removeprefix("+")
    if rest == "0":
        raise UsageError(f"must be above zero: {text}")
    if not rest:
        raise UsageError(f"not a duration above zero such as 300ms, 10s or 1h30m: {text}")
    total = 0
    at = 0
    while at < len(rest):
        match = _DURATION_PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            raise UsageError(f"not a duration such as 300ms, 10s or 1h30m: {text}")
        total += _nanoseconds(match[1], match[2] or "", _NANOSECONDS[match[3]])
        at = match.end()
    if total > _LONGEST:
        raise UsageError(f"a duration may be at most 2562047h47m16.854775807s: {text}")
    if total == 0:
        raise UsageError(f"must be above zero: {text}")
    return total / 10**9


def _nanoseconds(whole: str, fraction: str, unit: int) -> int:
    """A part of a duration; over `_LONGEST` for whatever is too much for it."""
    digits = whole.lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return _LONGEST + 1
    # Digits beyond a nanosecond of an hour say nothing more.
    fraction = fraction[:_MOST_DIGITS]
    return int(digits or "0") * unit + int(fraction or "0") * unit // int(10 ** len(fraction))


def text(value: str) -> str:
    """Any text: what it may be depends on other flags and is looked at with them."""
    return value


def framework(text: str) -> str:
    """The name of a framework whose saves can be told. Raises UsageError."""
    if text not in {"hf", "dcp"}:
        raise UsageError(f"neither hf nor dcp: {text}")
    return text


def attempt(text: str) -> str:
    """The name of an execution, one folder's name (E1). Raises UsageError."""
    if _BAD_ATTEMPT.match(text):
        raise UsageError(f"not a folder's name without slashes and control characters: {text}")
    return text
