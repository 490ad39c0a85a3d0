"""F9, V8: a secret is found however its characters are spelled, and nothing else is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.redaction import Redactor

TOKEN = "TOKENCANARY/ab+cd=="


def struck(text: str, *secrets: str) -> str:
    concealed = Redactor()
    concealed.add(secrets)
    return concealed.strike(text)


@pytest.mark.parametrize(
    "spelled",
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
        "".join(f"%{ord(char):02X}" for char in TOKEN),
        "".join(f"\\u{ord(char):04x}" for char in TOKEN),
    ],
)
def test_a_secret_is_struck_out_in_every_spelling(spelled: str) -> None:
    """F9"""
    assert struck(f"the key {spelled}, twice: {spelled}{spelled}", TOKEN) == "the key …, twice: ……"


def test_of_secrets_that_overlap_nothing_is_left() -> None:
    """F9: one may begin as another does, or end as another begins."""
    assert struck("abcdefgh", "abcd", "abcdef") == "…gh"
    assert struck("abcdefgh", "abcdef", "defgh") == "…"
    assert struck("xabcdabcdx", "abcd") == "x……x"


@pytest.mark.parametrize("secret", ["a", "st", "key"])
def test_a_very_short_secret_is_struck_out_as_a_word_only(secret: str) -> None:
    """F9"""
    said = f"a monkey's latest keystone, secret={secret}; at {secret}"
    rest = struck(said, secret)
    assert rest.endswith("monkey's latest keystone, secret=…; at …")


def test_a_text_without_a_secret_stays_as_it_is() -> None:
    said = "list pub/: Ünïcode İ 100%25 \\u0041 \udcff"
    assert struck(said, TOKEN, "") == said
    assert struck(said) == said


WAYS: list[Callable[[str], str]] = [
    str,
    str.upper,
    lambda text: json.dumps(text)[1:-1],
    lambda text: quote(text, safe=""),
    lambda text: quote(json.dumps(text)[1:-1], safe=""),
    lambda text: quote(quote(text, safe=""), safe=""),
    lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
]


@given(st.text(st.characters(max_codepoint=0x7E, min_codepoint=0x21), min_size=4), st.sampled_from(WAYS))
def test_whatever_a_secret_holds_it_is_found_in_the_ways_of_servers(secret: str, way: Callable[[str], str]) -> None:
    """F9, V8"""
    said = struck(f"<{way(secret)}>", secret)
    assert said == "<…>"


@given(st.text(min_size=4).filter(str.isprintable))
def test_a_secret_of_any_script_is_found(secret: str) -> None:
    """F9"""
    for spelled in (secret, json.dumps(secret)[1:-1], quote(secret, safe="", errors="replace")):
        assert struck(f"\n{spelled}\n", secret) == "\n…\n"
