"""The README says what the program's help says: each verb's flags with their defaults, and the exit statuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from publish.cli import verbs
from publish.cli.help import STATUSES, VARIABLES
from publish.cli.verbs.common import CHECKPOINT, Verb

VERBS = [verbs.load(name) for name in verbs.NAMES]
README = Path(__file__).parents[2] / "README.md"


def rows() -> list[list[str]]:
    """The cells of every table's rows."""
    lines = README.read_text().splitlines()
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
        if line.startswith("|")
    ]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_each_flag_is_in_a_table_with_its_default(verb: Verb) -> None:
    for flag in verb.flags:
        # The root of probe has a narrower synopsis of its own.
        name = f"`{CHECKPOINT.synopsis if flag.name == CHECKPOINT.name else flag.synopsis}`"
        cells = [row for row in rows() if row and row[0] == name]
        assert cells, name
        if flag.default and flag.metavar:
            assert any(f"`{flag.default}`" in cell for row in cells for cell in row), name


def test_each_exit_status_is_in_a_table() -> None:
    first = [row[0].replace("`", "") for row in rows() if row]
    for status, _ in STATUSES:
        assert status in first


def test_each_variable_is_in_a_table() -> None:
    text = [cell for row in rows() for cell in row]
    for flag, _ in VARIABLES:
        assert any(flag.variable in cell for cell in text)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_each_verb_is_called_as_its_help_says(verb: Verb) -> None:
    assert f"publish {verb.name} -checkpoint " in README.read_text()
