"""README and docs/verbs.md say what the program's help says, and what they show is what happens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from publish.cli import verbs
from publish.cli.help import STATUSES, VARIABLES
from publish.cli.verbs.common import CHECKPOINT, Verb
from tests.support.program import CLEAN, PROGRAM

VERBS = [verbs.load(name) for name in verbs.NAMES]
EACH_VERB = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
REPOSITORY = Path(__file__).parents[2]
README = REPOSITORY / "README.md"
VERBS_PAGE = REPOSITORY / "docs/verbs.md"


def section(page: Path, heading: str) -> str:
    """The text between a heading and the next one of any level."""
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#+ |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of every row of every table."""
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("|")
    ]


@EACH_VERB
def test_each_flag_is_in_the_common_table_or_in_that_of_its_verb(verb: Verb) -> None:
    """cli.3: with its default, and whether it is required."""
    common = rows(section(README, "## Verbs")) + rows(section(VERBS_PAGE, "## Flags of `-framework marker`"))
    tables = {row[0]: row for row in common + rows(section(VERBS_PAGE, f"## {verb.name}"))}
    for flag in verb.flags:
        # The root of probe has a narrower synopsis of its own.
        synopsis = CHECKPOINT.synopsis if flag.name == CHECKPOINT.name else flag.synopsis
        row = tables.get(f"`{synopsis}`")
        assert row, f"{verb.name}: {synopsis}"
        assert ("required" in row[1]) == flag.required, synopsis
        if flag.default and flag.metavar:
            assert f"`{flag.default}`" in row[1], synopsis
        elif flag.default:
            assert row[1] == ("on" if flag.default == "true" else "off"), synopsis
        elif flag.variable:
            assert row[1] == f"`{flag.variable}`"


@EACH_VERB
def test_each_section_lists_only_flags_that_the_verb_takes(verb: Verb) -> None:
    """cli.3."""
    listed = {row[0] for row in rows(section(VERBS_PAGE, f"## {verb.name}")) if row[0].startswith("`-")}
    assert listed <= {f"`{flag.synopsis}`" for flag in verb.flags}


@EACH_VERB
def test_each_verb_is_called_as_its_help_says(verb: Verb) -> None:
    assert f"`{verb.usage}`" in section(VERBS_PAGE, f"## {verb.name}")


def test_the_table_of_verbs_is_that_of_help() -> None:
    listed = [row for row in rows(section(README, "## Verbs")) if row[0].startswith("[")]
    assert listed == [[f"[`{verb.name}`](docs/verbs.md#{verb.name})", verb.summary] for verb in VERBS]


def test_each_exit_status_is_in_a_table() -> None:
    """cli.5."""
    table = rows(section(README, "## Verbs"))
    for status, meaning in STATUSES:
        assert [f"`{status}`", meaning] in table


def test_each_variable_is_in_a_table_with_the_verbs_that_use_it() -> None:
    """env.1."""
    table = rows(section(README, "## Verbs"))
    for flag, meaning in VARIABLES:
        users = ", ".join(verb.name for verb in VERBS if flag in verb.flags)
        assert [f"`{flag.variable}`", users, meaning] in table


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


TRAIN = """
import argparse, json, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--output_dir", type=pathlib.Path)
parser.add_argument("--resume_from_checkpoint", default="checkpoint-0")
wanted = parser.parse_args()
print("from", wanted.resume_from_checkpoint.rpartition("checkpoint-")[2])
step = int(wanted.resume_from_checkpoint.rpartition("-")[2]) + 100
save = wanted.output_dir / f"checkpoint-{step}"
save.mkdir(parents=True)
(save / "trainer_state.json").write_text(json.dumps({"global_step": step}))
"""


def test_the_line_of_a_job_script_resumes_where_its_last_start_ended(tmp_path: Path) -> None:
    """run.1, run.2"""
    (line,) = re.findall(r"^```sh\n(.*?)^```", section(README, "## In a job script"), re.MULTILINE | re.DOTALL)
    root = tmp_path / "run-7"
    root.mkdir()
    (tmp_path / "python").symlink_to(sys.executable)
    (tmp_path / "train.py").write_text(TRAIN)
    for start in ("0", "100", "200", "300"):
        ended = subprocess.run(
            ["/bin/sh", "-ec", line.replace("/ckpt/run-7", str(root))],
            cwd=tmp_path,
            env=CLEAN | {"PATH": f"{tmp_path}:{Path(PROGRAM).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (ended.returncode, ended.stdout) == (0, f"from {start}\n"), ended.stderr
    left = sorted(json.loads(state.read_text())["global_step"] for state in root.glob("exec/*/*/trainer_state.json"))
    assert left == [200, 300, 400]
