from __future__ import annotations

import pytest

from publish.cli.help import STATUSES, VARIABLES
from publish.cli.verbs import VERBS, Verb
from tests.support.program import call

EACH_VERB = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)


def test_there_are_the_verbs_of_the_contract() -> None:
    assert [verb.name for verb in VERBS] == ["resolve", "watch", "publish", "prune", "probe"]


@pytest.mark.parametrize("line", [("help",), ("-h",), ("--help",), ("-help",), ("help", "-h"), ("help", "help")])
def test_help_tells_of_every_verb_variable_and_status(line: tuple[str, ...]) -> None:
    """F8"""
    result = call(*line)
    assert (result.status, result.err) == (0, b"")
    text = result.out.decode()
    for word in (*(verb.summary for verb in VERBS), *(name for name, _, _ in VARIABLES), *dict(STATUSES).values()):
        assert word in text


@EACH_VERB
def test_a_verb_tells_of_its_flags_defaults_statuses_and_shows_an_example(verb: Verb) -> None:
    """F8, F3, F5"""
    result = call("help", verb.name)
    assert (result.status, result.err) == (0, b"")
    text = result.out.decode()
    assert text.startswith(f"usage: publish {verb.name} -checkpoint ")
    assert verb.usage.endswith(" ".join(["[flags]", *verb.positionals]))
    for flag in verb.flags:
        assert not flag.required or f" -{flag.name} " in verb.usage
        head = f"\n  -{flag.name} {flag.value}".rstrip()
        assert head + (f" (default {flag.default})" if flag.default else "") in text
    for status in ("\n  0  ", "\n  1  ", "\n  2  ", "\n  130, 143  "):
        assert status in text
    assert f"\n  {verb.example}\n" in text


@EACH_VERB
@pytest.mark.parametrize("flag", ["-h", "-help", "--help"])
def test_help_may_stand_anywhere_among_the_flags(verb: Verb, flag: str) -> None:
    """F8"""
    text = call("help", verb.name).out
    assert call(verb.name, flag) == (0, text, b"")
    assert call(verb.name, "-checkpoint", "gs://b/p", flag, "-nonsense") == (0, text, b"")


@EACH_VERB
def test_help_fits_a_terminal(verb: Verb) -> None:
    for line in (*call("help", verb.name).out.splitlines(), *call("help").out.splitlines()):
        assert len(line) <= 110


DEFAULTS = {
    "timeout": "5m",
    "interval": "10s",
    "keep": "3",
    "probe": "false",
    "checkpoint": "",
    "creds": "",
    "proxy": "",
    "framework": "",
    "epoch": "",
    "attempt": "",
}


@EACH_VERB
def test_each_verb_has_the_flags_of_the_contract(verb: Verb) -> None:
    """F3, E"""
    own = {"resolve": {"probe"}, "watch": {"framework", "interval", "epoch", "attempt"}, "publish": {"epoch"}}
    own |= {"prune": {"keep"}, "probe": set()}
    assert {flag.name for flag in verb.flags} == {"checkpoint", "creds", "proxy", "timeout"} | own[verb.name]
    assert {flag.name: flag.default for flag in verb.flags}.items() <= DEFAULTS.items()
