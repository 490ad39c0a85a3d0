"""The README says what the program's help says, and what it shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from publish.cli import verbs
from publish.cli.help import STATUSES, VARIABLES
from publish.cli.verbs.common import CHECKPOINT, Verb
from tests.support.program import PROGRAM

VERBS = [verbs.load(name) for name in verbs.NAMES]
README = Path(__file__).parents[2] / "README.md"


def section(heading: str) -> str:
    """The text between a heading and the next one of any level."""
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#+ |\Z)", README.read_text(), re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of every row of every table."""
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("|")
    ]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_each_flag_is_in_the_common_table_or_in_that_of_its_verb(verb: Verb) -> None:
    """cli.3: with its default."""
    common = rows(section("## Verbs")) + rows(section("### Frameworks"))
    tables = {row[0]: row for row in common + rows(section(f"### {verb.name}"))}
    for flag in verb.flags:
        # The root of probe has a narrower synopsis of its own.
        synopsis = CHECKPOINT.synopsis if flag.name == CHECKPOINT.name else flag.synopsis
        row = tables.get(f"`{synopsis}`")
        assert row, f"{verb.name}: {synopsis}"
        if flag.default and flag.metavar:
            assert f"`{flag.default}`" in row[1], synopsis


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_each_section_lists_only_flags_that_the_verb_takes(verb: Verb) -> None:
    """cli.3."""
    listed = {row[0] for row in rows(section(f"### {verb.name}")) if row[0].startswith("`-")}
    assert listed <= {f"`{flag.synopsis}`" for flag in verb.flags}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_each_verb_is_called_as_its_help_says(verb: Verb) -> None:
    assert f"publish {verb.name} -checkpoint " in section(f"### {verb.name}")


def test_each_exit_status_is_in_a_table() -> None:
    """cli.5."""
    first = [row[0].replace("`", "") for row in rows(section("### Environment and exit status"))]
    for status, _ in STATUSES:
        assert status in first


def test_each_variable_is_in_a_table() -> None:
    """env.1."""
    first = [row[0] for row in rows(section("### Environment and exit status"))]
    for flag, _ in VARIABLES:
        assert f"`{flag.variable}`" in first


SESSIONS = re.findall(r"^```console\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.splitlines()[0])
def test_a_session_goes_as_it_is_shown(session: str, tmp_path: Path) -> None:
    """Each command prints what the README shows; `…` stands for the folder."""
    commands = [line.removeprefix("$ ") for line in session.splitlines() if line.startswith("$ ")]
    shown = [line for line in session.splitlines() if not line.startswith("$ ")]
    ended = subprocess.run(
        ["/bin/sh", "-ec", "\n".join(commands)],
        cwd=tmp_path,
        env={"PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.replace(str(tmp_path.resolve()), "…").splitlines() == shown
