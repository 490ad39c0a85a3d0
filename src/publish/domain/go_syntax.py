"""How Go writes booleans and durations: in flags as its package `flag` takes them, and in Vault's variables."""

from __future__ import annotations

# strconv.ParseBool
TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})

NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
"""The units of time.ParseDuration; a micro sign is U+00B5 or the Greek letter U+03BC."""
