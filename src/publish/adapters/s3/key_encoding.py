"""How a store writes keys in a listing.

`encoding-type=url` lets a listing hold keys that XML cannot represent, but stores disagree on what it means: AWS writes
a blank as `+`, others as `%20`, some leave `+` as it is, some ignore it, and some ignore it and say `url` all the same
(docs/s3-quirks.md). What a page shows decides; where it does not, the store is asked for one key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

_ENCODED = re.compile(r"[%+]")
_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class UnknownEncoding(Exception):
    """The page has to be listed again."""


class KeyEncoding(NamedTuple):
    """One way to write keys. `refuted_by`: what no key that is written so contains."""

    name: str
    decode: Callable[[str], str]
    refuted_by: re.Pattern[str]


_NOTHING = re.compile(r"(?!)")
RAW = KeyEncoding("raw", str, _NOTHING)
# `+` is a plus. A blank or a malformed escape would have been encoded.
PERCENT = KeyEncoding("percent", unquote, re.compile(rf" |{_MALFORMED_ESCAPE.pattern}"))
# `+` is a blank. SeaweedFS 4.48 writes a blank in the last part of a key so, and as %20 in the folders before it.
FORM = KeyEncoding("form", unquote_plus, PERCENT.refuted_by)


def is_our_prefix(echoed: str, prefix: str) -> bool:
    """Whether the `Prefix` of a response is that of the request, raw or decoded once. Some stores leave it empty."""
    return echoed in ("", prefix) or prefix in (unquote(echoed), unquote_plus(echoed))


def find_encoding(
    written: Sequence[str],
    prefix: str,
    *,
    declared: bool,
    ask: Callable[[str], Iterable[str]],
    known: KeyEncoding | None = None,
) -> KeyEncoding | None:
    """The encoding of the keys of a page, all of which begin with `prefix`; None if there is no such encoding.

    `declared`: the response says that its keys are encoded. `ask` lists the keys that begin with a decoded key, as
    written. `known`: the encoding that the store was found to use. Raises UnknownEncoding.
    """
    if known is not None and _fits(known, written, prefix):
        return known
    raw_fits = _fits(RAW, written, prefix)
    if raw_fits and (not declared or not _ENCODED.search("".join(written))):
        return RAW
    possible = [encoding for encoding in (FORM, PERCENT) if _fits(encoding, written, prefix)] + [RAW] * raw_fits
    for key in written:
        if len({encoding.decode(key) for encoding in possible}) > 1:
            possible = [encoding for encoding in possible if _confirms(ask(encoding.decode(key)), key)]
            if not possible:
                raise UnknownEncoding(f"a listed key was removed before its encoding was known: {key}")
    return possible[0] if possible else None


def _fits(encoding: KeyEncoding, written: Iterable[str], prefix: str) -> bool:
    return all(
        not encoding.refuted_by.search(key) and encoding.decode(key).startswith(prefix) for key in written
    ) and not (encoding is PERCENT and _writes_blank_as_plus(written))


def _writes_blank_as_plus(written: Iterable[str]) -> bool:
    """Whether `+` and an encoded plus occur, so that `+` is something else."""
    together = "\n".join(written)
    return "+" in together and "%2b" in together.lower()


def _confirms(listed: Iterable[str], key: str) -> bool:
    return any(found.startswith(key) for found in listed)
