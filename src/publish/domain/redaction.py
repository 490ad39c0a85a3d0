"""Removes secrets from text that a server, a proxy or a library wrote.

A secret is found as it is, percent-encoded (RFC 3986), JSON-escaped (RFC 8259), as HTML entities, in
base64 (RFC 4648, either alphabet, at any offset) and in hexadecimal; up to four encodings may be nested.
The time is linear in the text: each layer of encoding is undone in one pass, and each layer is searched.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from typing import NamedTuple

PLACEHOLDER = "…"

# A shorter secret is redacted only as a whole word: inside words it would garble the text, and the gaps would
# reveal it. Real stores hand out longer ones.
_MIN_LENGTH = 4
_MAX_LAYERS = 4

# One escaped character each. A UTF-8 sequence and a surrogate pair are taken whole.
_ESCAPE = re.compile(
    r"""(?P<percent>%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){1,3} | %[0-9A-Fa-f]{2})
    | (?P<utf16>\\u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2} | \\u[0-9A-Fa-f]{4})
    | \\x(?P<byte>[0-9A-Fa-f]{2})
    | \\(?P<plain>["'/\\])
    | (?P<entity>&(?:\#[0-9]{1,10};? | \#[xX][0-9A-Fa-f]{1,8};? | [A-Za-z][A-Za-z0-9]{1,31};))""",
    re.VERBOSE,
)
_BASE64_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_STANDARD_ALPHABET = str.maketrans("-_", "+/")
# ASCII only: `str.lower` may change the length of a text.
_LOWER = {code: code + 0x20 for code in range(ord("A"), ord("Z") + 1)}


class _Layer(NamedTuple):
    """A text after some decoding. Character `i` came from `original[starts[i]:ends[i]]`."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


class _Pattern(NamedTuple):
    """A form of a secret. `period` is the least distance at which two occurrences may overlap."""

    text: str
    period: int
    is_word: bool = False


class Redactor:
    """The secrets known so far. May be used by several threads at once."""

    def __init__(self) -> None:
        self._plain: frozenset[_Pattern] = frozenset()
        self._base64: frozenset[_Pattern] = frozenset()

    def add(self, secrets: Iterable[str]) -> None:
        """Redacts these from now on, in upper and lower case; empty ones are ignored."""
        for secret in filter(None, secrets):
            self._plain |= set(_plain_patterns(secret))
            self._base64 |= set(_base64_patterns(secret))

    def redact(self, text: str, limit: int | None = None) -> str:
        """`text` with PLACEHOLDER in place of secrets. `limit`: made one line of at most `limit` characters."""
        text = self._replace(text)
        if limit is None:
            return text
        line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return line if len(line) <= limit else line[: limit - 1] + "…"

    def _replace(self, text: str) -> str:
        if not self._plain:
            return text
        hidden = bytearray(len(text))
        for layer in _layers(text):
            for start, end in self._find(layer.text):
                first, last = layer.starts[start], layer.ends[end - 1]
                hidden[first:last] = b"x" * (last - first)
        kept, done = [], 0
        for match in re.finditer(b"x+", hidden):
            kept += [text[done : match.start()], PLACEHOLDER]
            done = match.end()
        return "".join([*kept, text[done:]])

    def _find(self, text: str) -> Iterator[tuple[int, int]]:
        lowered = text.translate(_LOWER)
        for pattern in self._plain:
            yield from _occurrences(pattern, lowered)
        standard = text.translate(_STANDARD_ALPHABET)
        for pattern in self._base64:
            for start, end in _occurrences(pattern, standard):
                yield _with_shared_characters(standard, start, end)


def _plain_patterns(secret: str) -> Iterator[_Pattern]:
    """The secret and what its own escapes decode to, since a text may be decoded once too often; and its hex form."""
    for layer in _layers(secret):
        if layer.text:
            yield _pattern(layer.text.translate(_LOWER))
    if len(secret) >= _MIN_LENGTH:
        yield _pattern(_encode(secret).hex())


def _base64_patterns(secret: str) -> Iterator[_Pattern]:
    """For each offset modulo three, the characters that depend on the secret alone."""
    if len(secret) < _MIN_LENGTH:
        return
    raw = _encode(secret)
    for offset in range(3):
        # Six bits a character: the first that holds nothing of what is before, up to the last whole one.
        first, end = -(-offset * 8 // 6), (offset + len(raw)) * 8 // 6
        yield _pattern(b64encode(bytes(offset) + raw).decode()[first:end])


def _pattern(text: str) -> _Pattern:
    return _Pattern(text, _period(text), is_word=len(text) < _MIN_LENGTH)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _period(text: str) -> int:
    """The least shift at which the text matches itself (Knuth, Morris, Pratt)."""
    borders, border = [0], 0
    for char in text[1:]:
        while border and char != text[border]:
            border = borders[border - 1]
        border += char == text[border]
        borders.append(border)
    return len(text) - border


def _occurrences(pattern: _Pattern, text: str) -> Iterator[tuple[int, int]]:
    """Ranges that together cover each occurrence. Linear: a repetition is followed by its period."""
    needle, period, is_word = pattern
    start = text.find(needle)
    while start >= 0:
        end = start + len(needle)
        if period < len(needle):
            while text.startswith(needle[-period:], end):
                end += period
        if not is_word or not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            yield start, end
        start = text.find(needle, end - len(needle) + period)


def _with_shared_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """Also the characters that hold bits of the secret beside others', and the padding."""
    if start and text[start - 1] in _BASE64_ALPHABET:
        start -= 1
    if text[end : end + 1] in _BASE64_ALPHABET:
        end += 1
    while text[end : end + 1] == "=":
        end += 1
    return start, end


def _layers(text: str) -> Iterator[_Layer]:
    """The text, and what it decodes to, as long as there is something to decode."""
    layer = _Layer(text, range(len(text)), range(1, len(text) + 1))
    yield layer
    for _ in range(_MAX_LAYERS):
        if not _ESCAPE.search(layer.text):
            return
        layer = _decoded(layer)
        yield layer


def _decoded(layer: _Layer) -> _Layer:
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for match in _ESCAPE.finditer(layer.text):
        first, last = match.span()
        character = _character(match)
        parts += [layer.text[done:first], character]
        starts += [*layer.starts[done:first], *[layer.starts[first]] * len(character)]
        ends += [*layer.ends[done:first], *[layer.ends[last - 1]] * len(character)]
        done = last
    parts.append(layer.text[done:])
    starts += layer.starts[done:]
    ends += layer.ends[done:]
    return _Layer("".join(parts), starts, ends)


def _character(escape: re.Match[str]) -> str:
    if escape["percent"]:
        return bytes.fromhex(escape["percent"].replace("%", "")).decode("utf-8", "replace")
    if escape["utf16"]:
        return bytes.fromhex(escape["utf16"].replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    if escape["byte"]:
        return chr(int(escape["byte"], 16))
    return escape["plain"] or unescape(escape["entity"])
