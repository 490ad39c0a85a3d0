"""cli.9, vault.8: a secret is found in every encoding, nothing else is removed, and the time is linear."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from html import escape
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from publish.domain.redaction import PLACEHOLDER, Redactor

if TYPE_CHECKING:
    from _typeshed import TraceFunction

TOKEN = "TOKENCANARY/ab+cd=="


def redacted(text: str, *secrets: str, limit: int | None = None) -> str:
    redactor = Redactor()
    redactor.add(secrets)
    return redactor.redact(text, limit)


@pytest.mark.parametrize(
    "encoded",
    [
        TOKEN,
        TOKEN.lower(),
        "TOKENCANARY%2Fab%2Bcd%3D%3D",
        "TOKENCANARY%2fab%2bcd%3d%3d",
        "TOKENCANARY%2Fab+cd==",
        "TOKENCANARY%252Fab%252Bcd%253D=",
        r"TOKENCANARY\/ab+cd==",
        r"TOKENCANARY\u002fab\u002Bcd==",
        r"TOKENCANARY\/ab%2Bcd\u003d=",
        r"TOKENCANARY\\/ab+cd==",
        r"TOKENCANARY\x2fab+cd==",
        "TOKENCANARY&#47;ab&#43;cd&#61;=",
        "TOKENCANARY&#0047ab&#43cd==",
        "TOKENCANARY&#x2f;ab&#X2B;cd==",
        "TOKENCANARY&sol;ab&plus;cd&equals;=",
        "TOKENCANARY&amp;#47;ab+cd==",
        "TOKENCANARY%26sol%3Bab+cd==",
        "".join(f"%{ord(char):02X}" for char in TOKEN),
        "".join(f"\\u{ord(char):04x}" for char in TOKEN),
        "".join(f"&#{ord(char)};" for char in TOKEN),
        TOKEN.encode().hex(),
        TOKEN.encode().hex().upper(),
    ],
)
def test_a_secret_is_redacted_in_every_encoding(encoded: str) -> None:
    """cli.9"""
    assert redacted(f"the key {encoded}, twice: {encoded}{encoded}", TOKEN) == "the key …, twice: …"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", [b"", b"?", b"??", b"user:", b"~~~~~~"])
@pytest.mark.parametrize("after", [b"", b"?", b"??", b"???"])
@pytest.mark.parametrize("secret", [TOKEN, "canary>>>???~~~", "pässwörd", "abcd"])
def test_a_secret_is_redacted_in_base64_at_every_offset(
    encode: Callable[[bytes], bytes], before: bytes, after: bytes, secret: str
) -> None:
    """cli.9: of the encoded text, what is left decodes to nothing of the secret."""
    encoded = encode(before + secret.encode() + after).decode()
    for text in (encoded, encoded.rstrip("="), quote(encoded, safe="")):
        left, found, right = redacted(text, secret).partition(PLACEHOLDER)
        assert found
        assert len(unquote(left)) <= len(before) * 8 // 6
        assert len(unquote(right).rstrip("=")) <= -(-len(after) * 8 // 6)


def test_overlapping_secrets_are_redacted_whole() -> None:
    """cli.9: one may begin as another does, or end as another begins."""
    assert redacted("abcdefgh", "abcd", "abcdef") == "…gh"
    assert redacted("abcdefgh", "abcdef", "defgh") == "…"
    assert redacted("xabcdabcdx", "abcd") == "x…x"
    assert redacted("xababababax", "ababa") == "x…x"
    assert redacted("xaabaabaax", "aabaa") == "x…x"


@pytest.mark.parametrize("secret", ["a", "st", "key"])
def test_a_very_short_secret_is_redacted_only_as_a_word(secret: str) -> None:
    """cli.9"""
    said = redacted(f"a monkey's latest keystone, secret={secret}; at {secret}", secret)
    assert said.endswith("monkey's latest keystone, secret=…; at …")


@pytest.mark.parametrize("secrets", [(), ("",), (TOKEN,), ("&#1;",)])
def test_text_without_a_secret_is_unchanged(secrets: tuple[str, ...]) -> None:
    text = "list pub/: Ünïcode İ 100%25 %ff %C3 \\u0041 \\ud800 &amp; &nosuch; &#99999999; \udcff"
    assert redacted(text, *secrets) == text


def test_with_a_limit_the_text_is_one_bounded_line_and_no_secret_is_cut_in_two() -> None:
    """vault.8"""
    assert redacted("a\n\tb\x1b[31m  c", limit=100) == "a b [31m c"
    assert redacted("x" * 20, limit=10) == "x" * 9 + "…"
    assert redacted("x" * 10, limit=10) == "x" * 10
    assert redacted("x" * 8 + TOKEN, TOKEN, limit=10) == "x" * 8 + "…"


ENCODINGS: list[Callable[[str], str]] = [
    str,
    str.upper,
    lambda text: json.dumps(text)[1:-1],
    lambda text: quote(text, safe=""),
    lambda text: quote(json.dumps(text)[1:-1], safe=""),
    lambda text: quote(quote(text, safe=""), safe=""),
    lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    escape,
    lambda text: escape(quote(text, safe="")),
    lambda text: json.dumps(escape(text))[1:-1],
    lambda text: text.encode().hex(),
    lambda text: base64.b64encode(text.encode()).decode(),
]


@given(st.text(st.characters(max_codepoint=0x7E, min_codepoint=0x21), min_size=4), st.sampled_from(ENCODINGS))
def test_any_ascii_secret_is_found_in_the_encodings_of_servers(secret: str, encode: Callable[[str], str]) -> None:
    """cli.9, vault.8"""
    # Not one that is itself an encoding of what surrounds it here, such as `&gt;`.
    assume(redacted("<>", secret) == "<>")
    assert redacted(f"<{encode(secret)}>", secret) == "<…>"


@given(st.text(min_size=4).filter(str.isprintable))
def test_a_secret_in_any_script_is_found(secret: str) -> None:
    """cli.9"""
    for encoded in (secret, json.dumps(secret)[1:-1], quote(secret, safe="", errors="replace"), escape(secret)):
        assert redacted(f"\n{encoded}\n", secret) == "\n…\n"


def steps(text: str, secrets: list[str]) -> int:
    """Lines of Python that redacting takes."""
    redactor = Redactor()
    redactor.add(secrets)
    count = 0

    def trace(_frame: FrameType, event: str, _arg: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        redactor.redact(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("unit", "secret"),
    [
        ("a", "a" * 500),
        ("a", "a" * 499 + "b"),
        ("ab", "ab" * 250),
        ("%61", "a" * 500),
        ("%2561", "a" * 499 + "b"),
        ("\\", "\\" * 500),
        ("&", "&" * 500),
        ("&#97;", "a" * 500),
        ("YWFh", "a" * 500),
        ("61", "a" * 500),
        ("=", "canary"),
        ("canary", "canary"),
    ],
)
def test_the_time_is_linear_in_the_text(unit: str, secret: str) -> None:
    """cli.9: an adversary's text of 64 KiB costs no more than its length allows."""
    shorter, longer = (steps(unit * (size // len(unit)), [secret]) for size in (8_000, 32_000))
    assert longer <= 4.5 * shorter
    assert longer <= 60 * 32_000
