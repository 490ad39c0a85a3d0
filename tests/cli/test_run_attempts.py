"""What `run` refuses before COMMAND starts, and where it looks for saves (run.7, run.8, layout.8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import PROGRAM, call, run
from tests.support.run_jobs import TRAINING, published, run_line

STARTED = "echo started"


def test_an_attempt_that_has_published_is_not_started_again(root: Path) -> None:
    """run.8: it would resume from where it began, and write over what is published"""
    assert run(*run_line(root, "-attempt", "a"), "sh", "-c", TRAINING, env={"STEPS": "1 2"}).status == 0
    again = run(*run_line(root, "-attempt", "a"), "sh", "-c", STARTED)
    assert (again.status, again.out) == (1, b"")
    assert again.notes[-1] == (
        "this attempt has run already and published 2 of its saves, which a second start would write over; "
        "give each start its own attempt (a requeued job: $SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}): a"
    )
    assert run(*run_line(root, "-attempt", "a-1"), "sh", "-c", STARTED).out == b"started\n"


def test_an_attempt_that_has_not_published_may_be_started_again(root: Path) -> None:
    """run.8, begin.1"""
    for _ in range(2):
        result = run(*run_line(root, "-attempt", "a"), "sh", "-c", 'echo "$DISPATCH_EPOCH"; exit 3')
        assert (result.status, result.out) == (3, b"1\n")


def test_a_node_that_does_not_watch_may_come_late(root: Path) -> None:
    """run.8, run.6: node 0 has published already"""
    line = run_line(root, "-attempt", "a", "-node", "0")
    assert run(*line, "sh", "-c", TRAINING, env={"STEPS": "1"}).status == 0
    late = run(*run_line(root, "-attempt", "a", "-node", "1"), "sh", "-c", STARTED)
    assert (late.status, late.out) == (0, b"started\n")


def test_a_job_that_its_own_training_submits_is_not_taken_for_the_same_start(root: Path) -> None:
    """run.8, begin.2: it inherits the variables of the first, as `sbatch` hands them on"""
    follow_up = f'publish run -checkpoint "{root}" -framework hf -- echo started'
    script = TRAINING + f"until ls {root}/pub >/dev/null 2>&1; do :; done; PATH=$BIN:$PATH {follow_up}"
    result = run(*run_line(root), "sh", "-c", script, env={"STEPS": "1", "BIN": str(Path(PROGRAM).parent)})
    assert (result.status, result.out) == (1, b"")
    assert any(note.startswith("this attempt has run already") for note in result.notes)


@pytest.mark.parametrize("node", ["0", "1"])
@pytest.mark.parametrize(
    ("attempt", "saves", "path"),
    [
        ("a" * 127, (), f"exec/{'a' * 127}/0"),
        ("a" * 120, (), f"exec/{'a' * 120}/checkpoint-0"),
        ("a", ("-saves", "b" * 120), f"exec/a/{'b' * 120}/checkpoint-0"),
    ],
)
def test_nothing_starts_if_no_save_could_be_published(
    root: Path, attempt: str, saves: tuple[str, ...], path: str, node: str
) -> None:
    """layout.8, begin.2: on every node, with the limit and the path"""
    result = run(*run_line(root, "-attempt", attempt, "-node", node, *saves), "sh", "-c", STARTED)
    assert (result.status, result.out) == (1, b"")
    assert "the limit is 255, which leaves 133 to the path below the root: " in result.notes[-1]
    assert result.notes[-1].endswith(f": {path}")


@pytest.mark.parametrize("folder", ["_actor", "run/checkpoints", "_actor/"])
def test_saves_may_lie_in_a_folder_of_dispatch_saves(root: Path, folder: str) -> None:
    """run.7"""
    script = f'echo "$DISPATCH_SAVES"; DISPATCH_SAVES="$DISPATCH_SAVES/{folder}"; {TRAINING}'
    result = run(*run_line(root, "-attempt", "a", "-saves", folder), "sh", "-c", script, env={"STEPS": "1"})
    assert (result.status, result.out) == (0, f"{root}/exec/a\n".encode())
    assert published(root) == 1
    resumed = run(*run_line(root), "sh", "-c", 'echo "$DISPATCH_RESUME"').out.decode()
    assert resumed == f"{root}/exec/a/{folder.rstrip('/')}/checkpoint-1\n"


@pytest.mark.parametrize("folder", ["", "/", "/abs", "..", "a/../b", ".", "a//b", "a\nb"])
def test_a_folder_outside_dispatch_saves_is_a_usage_error(root: Path, folder: str) -> None:
    """run.7"""
    result = call(*run_line(root, "-saves", folder), "true")
    assert result.status == 2
    assert result.err.startswith(b"publish: -saves: not a folder inside $DISPATCH_SAVES ")


def test_a_training_that_saved_elsewhere_is_told_where_to_save(root: Path) -> None:
    """run.1, watch.8"""
    result = run(*run_line(root, "-attempt", "a"), "true")
    assert result.status == 0
    assert result.err.rstrip().endswith(
        b"give $DISPATCH_SAVES to the training as the folder to save in, or name a folder in it with -saves"
    )


def test_an_empty_variable_is_named(root: Path) -> None:
    """env.1: as a job script sets it whose dispatcher gives none"""
    result = call(*run_line(root), "true", env={"DISPATCH_EPOCH": ""})
    assert result.status == 2
    assert result.notes[0] == (
        "-epoch or DISPATCH_EPOCH: not an unsigned decimal number, but empty (unset it, or give a number)"
    )


def test_help_tells_what_exit_statuses_are_commands_own() -> None:
    """cli.8, run.3"""
    text = call("help", "run").out.decode()
    assert text.startswith("usage: publish run -checkpoint ROOT -framework NAME [flags] -- COMMAND [ARG...]\n")
    for status in ("126, 127", "128+N", "others"):
        assert f"\n  {status} " in text
    assert "else one above every earlier one" in text
    assert "else a fresh name" in text
