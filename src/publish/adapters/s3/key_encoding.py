"""How a store writes keys in a listing.

`encoding-type=url` lets a listing hold keys that XML cannot represent, but stores disagree on what it means: AWS writes
a blank as `+`, others as `%20`, SeaweedFS both; some leave `+` as it is; some ignore the request, and some of them say
`url` all the same (docs/s3-quirks.md). What a page shows decides; where it does not, the store is asked for one key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

_ENCODED = re.compile(r"[%+]")


class UnknownEncoding(Exception):
    """The page has to be listed again."""


class KeyEncoding(NamedTuple):
    """One way to write keys. `refuted_by`: what no key that is written so contains."""

    name: str
    decode: Callable[[str], str]
    refuted_by: re.Pattern[str]


# A blank or a malformed escape would have been encoded.
_NOT_ENCODED = re.compile(r" |%(?![0-9A-Fa-f]{2})")
# `+` is a blank, `+` is a plus, and nothing is encoded.
FORM = KeyEncoding("form", unquote_plus, _NOT_ENCODED)
PERCENT = KeyEncoding("percent", unquote, _NOT_ENCODED)
RAW = KeyEncoding("raw", str, re.compile(r"(?!)"))
ENCODINGS = (RAW, PERCENT, FORM)


def is_our_prefix(echoed: str, prefix: str) -> bool:
    """Whether the `Prefix` of a response is that of the request, raw or decoded once. Some stores leave it empty."""
    return echoed in ("", prefix) or prefix in (unquote(echoed), unquote_plus(echoed))


def find_encodings(
    written: Sequence[str],
    prefix: str,
    *,
    declared: bool,
    ask: Callable[[str], Iterable[str]],
    known: Sequence[KeyEncoding] = ENCODINGS,
) -> Sequence[KeyEncoding]:
    """The encodings that the keys of a page can have, all of which begin with `prefix`. They agree on these keys.

    `declared`: the response says that its keys are encoded. `ask` lists the keys that begin with a decoded key, as
    written. `known`: what this found for an earlier page of the store. Raises UnknownEncoding.
    """
    if _fits(RAW, written, prefix):
        if not _ENCODED.search("".join(written)):
            return known
        if not declared:
            return [RAW]
    possible = [encoding for encoding in known if _fits(encoding, written, prefix)]
    possible = possible or [encoding for encoding in ENCODINGS if _fits(encoding, written, prefix)]
    for key in written:
        readings = {encoding.decode(key) for encoding in possible}
        if len(readings) > 1:
            confirmed = {reading for reading in readings if _confirms(ask(reading), key)}
            possible = [encoding for encoding in possible if encoding.decode(key) in confirmed]
            if not possible:
                raise UnknownEncoding(f"a listed key was removed before its encoding was known: {key}")
    return possible


def _fits(encoding: KeyEncoding, written: Iterable[str], prefix: str) -> bool:
    return all(not encoding.refuted_by.search(key) and encoding.decode(key).startswith(prefix) for key in written)


def _confirms(listed: Iterable[str], key: str) -> bool:
    return any(found.startswith(key) for found in listed)
