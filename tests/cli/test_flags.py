"""F1, as Go's package `flag` documents and does it."""

from __future__ import annotations

import pytest

from publish.cli import values
from publish.cli.flags import Flag, HelpRequested, Parsed, parse
from publish.domain.errors import UsageError

FLAGS = (
    Flag("name", "TEXT", values.text, ""),
    Flag("keep", "N", values.positive, ""),
    Flag("probe", "", values.boolean, ""),
)


@pytest.mark.parametrize(
    ("line", "given", "rest"),
    [
        ("", {}, ""),
        ("-name value", {"name": "value"}, ""),
        ("-name=value", {"name": "value"}, ""),
        ("--name value", {"name": "value"}, ""),
        ("--name=value", {"name": "value"}, ""),
        ("-name=a=b", {"name": "a=b"}, ""),
        ("-name=", {"name": ""}, ""),
        ("-name -keep", {"name": "-keep"}, ""),
        ("-name --", {"name": "--"}, ""),
        ("-name -h", {"name": "-h"}, ""),
        ("-name one -name two", {"name": "two"}, ""),
        ("-probe", {"probe": "true"}, ""),
        ("-probe=false", {"probe": "false"}, ""),
        ("-probe=0", {"probe": "0"}, ""),
        ("--probe=T", {"probe": "T"}, ""),
        ("-probe -probe=false", {"probe": "false"}, ""),
        ("-probe false", {"probe": "true"}, "false"),
        ("one", {}, "one"),
        ("one -name value", {}, "one -name value"),
        ("-name value one two", {"name": "value"}, "one two"),
        ("-- -name value", {}, "-name value"),
        ("-name value -- -x", {"name": "value"}, "-x"),
        ("- -name value", {}, "- -name value"),
        ("one -- two", {}, "one -- two"),
        ("-- --", {}, "--"),
        ("one -h", {}, "one -h"),
        ("-- -h", {}, "-h"),
    ],
)
def test_a_line_that_is_taken(line: str, given: dict[str, str], rest: str) -> None:
    assert parse(FLAGS, line.split()) == Parsed(given, rest.split())


def test_an_empty_word_is_a_positional() -> None:
    assert parse(FLAGS, ["", "-name"]) == Parsed({}, ["", "-name"])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("---name value", "bad flag syntax: ---name"),
        ("-=value", "bad flag syntax: -="),
        ("--=value", "bad flag syntax: --="),
        ("---name=value", "bad flag syntax: ---name="),
        ("---", "bad flag syntax: ---"),
        ("-nam value", "no such flag: -nam"),
        ("-NAME value", "no such flag: -NAME"),
        ("-x=secret", "no such flag: -x"),
        ("-name", "-name needs a value: TEXT"),
        ("-probe=maybe", "-probe: neither true nor false: maybe"),
        ("-probe=", "-probe: neither true nor false: "),
        ("-keep 0 -keep 3", "-keep: must be at least 1: 0"),
        ("-keep 1 -name", "-name needs a value: TEXT"),
        ("-x -h", "no such flag: -x"),
    ],
)
def test_a_line_that_is_refused(line: str, why: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse(FLAGS, line.split())
    assert str(refusal.value) == why


@pytest.mark.parametrize("line", ["-h", "-help", "--help", "--h", "-help=false", "-name value -h -x", "-h one"])
def test_a_line_that_asks_for_help(line: str) -> None:
    """F8"""
    with pytest.raises(HelpRequested):
        parse(FLAGS, line.split())
