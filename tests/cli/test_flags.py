"""Parsing flags as Go's package `flag` does (cli.1)."""

from __future__ import annotations

import pytest

from publish.cli.goflag import CommandLine, Flag, HelpRequested, boolean, parse, path, positive, text
from publish.domain.errors import UsageError

NAME = Flag("name", text, "TEXT", "")
KEEP = Flag("keep", positive, "N", "", default="3")
PROBE = Flag("probe", boolean, "", "", default="false")
MARKER = Flag("marker", path, "FILE", "")
EPOCH = Flag("epoch", positive, "N", "", variable="EPOCH")
FLAGS = (NAME, KEEP, PROBE, MARKER, EPOCH)


def parsed(line: str, **env: str) -> CommandLine:
    return parse(FLAGS, line.split(), env)


@pytest.mark.parametrize(
    ("line", "name", "probe", "positionals"),
    [
        ("", None, False, ""),
        ("-name value", "value", False, ""),
        ("-name=value", "value", False, ""),
        ("--name value", "value", False, ""),
        ("--name=value", "value", False, ""),
        ("-name=a=b", "a=b", False, ""),
        ("-name=", "", False, ""),
        ("-name -keep", "-keep", False, ""),
        ("-name --", "--", False, ""),
        ("-name -h", "-h", False, ""),
        ("-name one -name two", "two", False, ""),
        ("-probe", None, True, ""),
        ("-probe=false", None, False, ""),
        ("-probe=0", None, False, ""),
        ("--probe=T", None, True, ""),
        ("-probe -probe=false", None, False, ""),
        ("-probe false", None, True, "false"),
        ("one", None, False, "one"),
        ("one -name value", None, False, "one -name value"),
        ("-name value one two", "value", False, "one two"),
        ("-- -name value", None, False, "-name value"),
        ("-name value -- -x", "value", False, "-x"),
        ("- -name value", None, False, "- -name value"),
        ("one -- two", None, False, "one -- two"),
        ("-- --", None, False, "--"),
        ("one -h", None, False, "one -h"),
        ("-- -h", None, False, "-h"),
    ],
)
def test_flags_end_at_the_first_positional_or_two_hyphens(
    line: str, name: str | None, *, probe: bool, positionals: str
) -> None:
    """cli.1"""
    result = parsed(line)
    assert (result.get(NAME), result[PROBE]) == (name, probe)
    assert result.positionals == positionals.split()


def test_an_empty_word_is_a_positional() -> None:
    result = parse(FLAGS, ["", "-name"], {})
    assert (result.get(NAME), result.positionals) == (None, ["", "-name"])


def test_the_last_value_counts_and_all_can_be_had() -> None:
    """cli.1"""
    result = parsed("-marker a -keep 1 -marker=b -keep 2")
    assert (result[KEEP], result[MARKER]) == (2, b"b")
    assert result.every(MARKER) == [b"a", b"b"]
    assert parsed("").every(MARKER) == ()


def test_a_flag_that_is_not_given_has_its_default() -> None:
    result = parsed("")
    assert (result[KEEP], result[PROBE], result.get(NAME)) == (3, False, None)


@pytest.mark.parametrize(("line", "is_set"), [("", False), ("-keep 3", False), ("-keep 03", False), ("-keep 4", True)])
def test_a_flag_is_set_if_it_differs_from_its_default(line: str, *, is_set: bool) -> None:
    assert parsed(line).is_set(KEEP) is is_set


def test_a_variable_stands_in_for_a_flag() -> None:
    """env.1"""
    assert parsed("", EPOCH="7")[EPOCH] == 7
    assert parsed("-epoch 8", EPOCH="x")[EPOCH] == 8
    with pytest.raises(UsageError, match=r"^-epoch or EPOCH: not an unsigned decimal number: x$"):
        parsed("", EPOCH="x").get(EPOCH)
    with pytest.raises(UsageError, match=r"^no epoch given: use -epoch or set EPOCH$"):
        parsed("")[EPOCH]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("---name value", "bad flag syntax: ---name"),
        ("-=value", "bad flag syntax: -="),
        ("--=value", "bad flag syntax: --="),
        ("---name=value", "bad flag syntax: ---name="),
        ("---", "bad flag syntax: ---"),
        ("-nam value", "unknown flag (did you mean -name?): -nam"),
        ("-NAME value", "unknown flag: -NAME"),
        ("-x=secret", "unknown flag: -x"),
        ("-name", "-name needs a value: -name TEXT"),
        ("-probe=maybe", "-probe: expected true or false: maybe"),
        ("-probe=", "-probe: expected true or false: "),
        ("-keep 0 -keep 3", "-keep: must be at least 1: 0"),
        ("-keep 1 -name", "-name needs a value: -name TEXT"),
        ("-x -h", "unknown flag: -x"),
    ],
)
def test_a_mistake_is_named(line: str, why: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parsed(line)
    assert str(refusal.value) == why


@pytest.mark.parametrize("line", ["-h", "-help", "--help", "--h", "-help=false", "-name value -h -x", "-h one"])
def test_help_ends_the_parsing(line: str) -> None:
    """cli.8"""
    with pytest.raises(HelpRequested):
        parsed(line)
