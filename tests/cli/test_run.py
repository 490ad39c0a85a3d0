"""`run` as a job script uses it, with real processes (run.1 to run.3, run.5, run.6, watch.10)."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.program import CLEAN, PROGRAM, run, start
from tests.support.run_jobs import TRAINING, published, run_line


def test_one_command_line_starts_and_starts_again(root: Path) -> None:
    """run.1: what the first execution saved, the last moment included, is what the second resumes from"""
    first = run(*run_line(root, "-attempt", "a"), "sh", "-c", TRAINING, env={"STEPS": "1 2"})
    assert (first.status, first.out) == (0, b"")
    assert sum(note.startswith("published ") for note in first.notes) == 2
    second = run(*run_line(root), "sh", "-c", 'echo "$DISPATCH_EPOCH $DISPATCH_RESUME"')
    assert (second.status, second.out) == (0, f"2 {root}/exec/a/checkpoint-2\n".encode())


def test_a_string_without_a_name_in_the_environment_is_not_a_variable(root: Path) -> None:
    """run.2, env.2: execve(2) passes on any strings, and an empty name is not a variable of any flag."""
    strings = (ctypes.c_char_p * 3)(b"=x=1", b"HTTP_PROXY=http://x", None)
    words = [PROGRAM, *(str(word) for word in run_line(root, "-attempt", "a")), "cat", "/proc/self/environ"]
    arguments = (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words), None)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 1)
        ctypes.CDLL(None).execve(PROGRAM.encode(), arguments, strings)
        os._exit(99)
    os.close(write)
    with os.fdopen(read, "rb") as out:
        variables = out.read().split(b"\0")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert b"HTTP_PROXY=http://x" in variables
    assert not any(variable.startswith(b"=") for variable in variables)


@pytest.mark.parametrize("locale", [{}, {"LC_CTYPE": "C.UTF-8"}, {"LANG": "C"}])
def test_the_command_gets_the_environment_of_publish_and_four_variables(root: Path, locale: dict[str, str]) -> None:
    """run.2, env.2: byte by byte, whatever Python makes of it; what its libraries would act on is in it, too"""
    given = {
        "PATH": os.defpath,
        "ODD": os.fsdecode(b"\xe9 '\n"),
        "PYTHONPATH": "/x",
        "https_proxy": "http://p",
        **locale,
    }
    command = [PROGRAM, *run_line(root, "-attempt", "a"), "cat", "/proc/self/environ"]
    ended = subprocess.run(command, env=given, capture_output=True, check=True)
    added = {
        "DISPATCH_EPOCH": "1",
        "DISPATCH_ATTEMPT": "a",
        "DISPATCH_RESUME": "",
        "DISPATCH_SAVES": f"{root}/exec/a",
    }
    variables = dict(variable.split("=", 1) for variable in os.fsdecode(ended.stdout).removesuffix("\0").split("\0"))
    assert variables == given | added


def test_the_streams_are_the_commands_own(root: Path) -> None:
    """run.2: publish writes nothing to its stdout, and descriptors that it inherits reach it"""
    here, there = os.pipe()
    script = 'cat; echo error >&2; echo more >&"$MORE"; ' + TRAINING
    with start(
        *run_line(root),
        "bash",
        "-c",
        script,
        env={"STEPS": "1", "MORE": str(there)},
        stdin=subprocess.PIPE,
        pass_fds=[there],
    ) as process:
        os.close(there)
        out, err = process.communicate(b"to stdin")
    assert (process.returncode, out) == (0, b"to stdin")
    assert b"error\n" in err
    assert b"publish: published " in err
    with os.fdopen(here, "rb") as more:
        assert more.read() == b"more\n"


def test_a_stream_that_is_closed_stays_closed(root: Path) -> None:
    """run.2"""
    script = '"$@" <&- >/dev/null 2>&-; echo status $?'
    probe = "readlink /proc/self/fd/0 && exit 3; echo x >&2 && exit 4; exit 5"
    ended = subprocess.run(
        ["sh", "-c", script, "sh", PROGRAM, *run_line(root), "sh", "-c", probe],
        env=CLEAN,
        capture_output=True,
        check=True,
    )
    assert ended.stdout == b"status 5\n"


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
def test_the_status_is_the_commands(root: Path, script: str, status: int) -> None:
    """run.3"""
    result = run(*run_line(root), "sh", "-c", TRAINING + script, env={"STEPS": "1"})
    assert result.status == status
    assert published(root) == 1


@pytest.mark.parametrize(
    ("name", "status"), [("nonsuch", 127), ("./nonsuch", 127), ("", 127), ("/", 126), ("no-program", 126)]
)
def test_a_command_that_cannot_be_started(root: Path, name: str, status: int) -> None:
    """run.3"""
    (root / "no-program").write_text("")
    result = run(*run_line(root), name, env={"PATH": f"{root}:{os.defpath}"})
    assert (result.status, result.out) == (status, b"")
    assert result.notes[-1].startswith("cannot start COMMAND (")


def test_the_command_is_found_on_its_own_path(root: Path) -> None:
    """run.2"""
    (root / "train").write_text("#!/bin/sh\nexit 9\n")
    (root / "train").chmod(0o755)
    assert run(*run_line(root), "train", env={"PATH": f"/nonsuch:{root}"}).status == 9


def test_nothing_is_started_if_the_execution_cannot_begin(root: Path) -> None:
    """run.3"""
    result = run(*run_line(root.parent / "elsewhere"), "touch", root / "started")
    assert (result.status, result.out) == (1, b"")
    assert not (root / "started").exists()


def test_what_the_command_leaves_behind_is_not_waited_for(root: Path) -> None:
    """run.4"""
    result = run(*run_line(root), "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
    assert result.status == 0
    os.kill(int(result.out), signal.SIGKILL)


def test_a_command_that_closes_its_streams_is_watched(root: Path) -> None:
    """run.1"""
    result = run(*run_line(root), "sh", "-c", "exec <&- >&- 2>&-;" + TRAINING, env={"STEPS": "1"})
    assert result.status == 0
    assert published(root) == 1


def test_a_scan_that_fails_does_not_stop_the_training(root: Path) -> None:
    """run.5: it is said once, tried again, and what it missed is published"""
    script = """
        mkdir -p "$DISPATCH_SAVES/checkpoint-1"
        echo '[]' >"$DISPATCH_SAVES/checkpoint-1/trainer_state.json"
        read line
    """
    with start(
        *run_line(root, "-verify=false"), "sh", "-c", script + TRAINING, env={"STEPS": "1"}, stdin=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        while b"a scan failed, trying again" not in process.stderr.readline():
            pass
        _, err = process.communicate(b"\n", timeout=60)
        assert process.returncode == 0
    assert b"a scan failed" not in err
    assert published(root) == 1


@pytest.mark.parametrize(("ending", "status"), [("exit 0", 1), ("exit 7", 7)])
def test_a_final_scan_that_fails_is_a_failure(root: Path, ending: str, status: int) -> None:
    """run.3: unless the command has failed itself"""
    script = 'mkdir -p "$DISPATCH_SAVES/checkpoint-1"; echo "[]" >"$DISPATCH_SAVES/checkpoint-1/trainer_state.json"; '
    result = run(*run_line(root, "-verify=false"), "sh", "-c", script + ending)
    assert result.status == status
    assert result.notes[-1].startswith("run: the final scan failed")


def test_with_strict_a_scan_that_fails_ends_the_command(root: Path) -> None:
    """run.5"""
    script = """
        trap 'echo told; exit 0' TERM
        mkdir -p "$DISPATCH_SAVES/checkpoint-1"
        echo '[]' >"$DISPATCH_SAVES/checkpoint-1/trainer_state.json"
        while :; do sleep 0.01; done
    """
    result = run(*run_line(root, "-verify=false", "-strict"), "sh", "-c", script)
    assert (result.status, result.out) == (1, b"told\n")


def test_only_node_0_watches(root: Path) -> None:
    """run.6: the others get the same answer"""
    script = TRAINING + 'echo "$DISPATCH_EPOCH"'
    other = run(*run_line(root, "-attempt", "a", "-node", "1"), "sh", "-c", script, env={"STEPS": "1"})
    assert (other.status, other.out) == (0, b"1\n")
    assert other.notes == ["run: epoch 1, attempt a, starting from step 0"]
    assert published(root) == 0
    first = run(*run_line(root, "-attempt", "a", "-node", "0"), "sh", "-c", script, env={"STEPS": "2"})
    assert (first.status, first.out) == (0, b"1\n")
    assert published(root) == 2


def test_a_node_without_an_attempt_is_a_usage_error(root: Path) -> None:
    """run.6: each node would be an execution of its own"""
    result = run(*run_line(root, "-node", "0"), "true")
    assert result.status == 2
    assert result.notes[0] == "-node needs an attempt that all nodes share: use -attempt or set DISPATCH_ATTEMPT"


def test_with_keep_old_saves_are_removed(root: Path) -> None:
    """watch.10: on stderr, as all that publish says"""
    result = run(*run_line(root, "-attempt", "a", "-keep", "1"), "sh", "-c", TRAINING, env={"STEPS": "1 2 3"})
    assert (result.status, result.out) == (0, b"")
    assert [note.rpartition("/")[2] for note in result.notes if note.startswith("removed ")] == [
        "checkpoint-1",
        "checkpoint-2",
    ]
    assert published(root) == 1


def test_keep_every_needs_keep(root: Path) -> None:
    """watch.10"""
    result = run(*run_line(root, "-keep-every", "5"), "true")
    assert result.status == 2
    assert result.notes[0] == "-keep-every needs -keep"


def test_a_prune_that_fails_does_not_end_the_watch(root: Path) -> None:
    """watch.10"""
    script = 'touch "${DISPATCH_SAVES%/exec/*}/.publish/epoch/foreign"; ' + TRAINING
    result = run(*run_line(root, "-keep", "1"), "sh", "-c", script, env={"STEPS": "1"})
    assert result.status == 0
    assert any(note.startswith("prune: .publish/epoch/: ") for note in result.notes)
