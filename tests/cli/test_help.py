"""Help shows what the tables of verbs and flags hold (cli.8)."""

from __future__ import annotations

import shlex

import pytest

from publish.cli import goflag, verbs
from publish.cli.help import STATUSES, VARIABLES
from publish.cli.verbs.common import Verb
from tests.support.program import call

VERBS = [verbs.load(name) for name in verbs.NAMES]
EACH_VERB = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)


@pytest.mark.parametrize("line", [("help",), ("-h",), ("--help",), ("-help",), ("help", "-h"), ("help", "help")])
def test_help_shows_every_verb_variable_and_status(line: tuple[str, ...]) -> None:
    """cli.8"""
    result = call(*line)
    assert (result.status, result.err) == (0, b"")
    text = result.out.decode()
    for verb in VERBS:
        assert f"\n  {verb.name} " in text
        assert verb.summary in text
    for flag, about in VARIABLES:
        assert f"\n  {flag.variable} " in text
        assert about in text
    for status, meaning in STATUSES:
        assert f"\n  {status} " in text
        assert meaning in text


@EACH_VERB
def test_help_of_a_verb_shows_its_usage_flags_statuses_and_example(verb: Verb) -> None:
    """cli.8, cli.3, cli.5"""
    result = call("help", verb.name)
    assert (result.status, result.err) == (0, b"")
    text = result.out.decode()
    assert text.startswith(f"usage: {verb.usage}\n")
    assert verb.usage.startswith(f"publish {verb.name} -checkpoint ")
    for flag in verb.flags:
        (head,) = [line for line in text.splitlines() if f"{line} ".startswith(f"  {flag.synopsis} ")]
        assert ("required" in head) == flag.required
        assert not flag.metavar or not flag.default or f"default {flag.default})" in head
        assert verb.requires(flag) == (f" {flag.synopsis} " in verb.usage)
    for status, _ in STATUSES:
        assert f"\n  {status} " in text
    assert f"\n  {verb.example}\n" in text


@EACH_VERB
def test_the_example_of_a_verb_is_a_correct_command_line(verb: Verb) -> None:
    """cli.8"""
    # Within what a shell does with its output.
    words = shlex.split(verb.example[verb.example.index("publish ") :].partition(")")[0].removesuffix(" &"))
    assert words[:2] == ["publish", verb.name]
    line = goflag.parse(verb.flags, words[2:], {})
    verb.check(line)


def test_every_variable_of_a_flag_is_explained() -> None:
    """env.1, cli.8"""
    assert {flag.variable for verb in VERBS for flag in verb.flags} - {""} == {flag.variable for flag, _ in VARIABLES}


@EACH_VERB
@pytest.mark.parametrize("flag", ["-h", "-help", "--help"])
def test_the_help_flag_may_stand_anywhere_among_the_flags(verb: Verb, flag: str) -> None:
    """cli.8"""
    text = call("help", verb.name).out
    assert call(verb.name, flag) == (0, text, b"")
    assert call(verb.name, "-checkpoint", "gs://b/p", flag, "-nonsense") == (0, text, b"")


@EACH_VERB
def test_help_fits_a_terminal(verb: Verb) -> None:
    for line in (*call("help", verb.name).out.splitlines(), *call("help").out.splitlines()):
        assert len(line) <= 110


def test_probe_requires_credentials_and_an_s3_root() -> None:
    """probe.1"""
    text = call("help", "probe").out.decode()
    assert text.startswith("usage: publish probe -checkpoint s3://BUCKET/PREFIX -creds LIST [flags]\n")
    assert "\n  -creds LIST (required)\n" in text
    assert "directory" not in text
