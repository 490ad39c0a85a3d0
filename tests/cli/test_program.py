"""The installed program, as a user's shell starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from publish import __version__
from publish.cli import app
from tests.support.program import (
    CLEAN,
    PROGRAM,
    Result,
    call,
    fill,
    run,
    start,
    until_it_waits_to_write,
    without_narration,
)

EVERY_ANSWER = (
    ("resolve", "-checkpoint", "ROOT"),
    ("publish", "-checkpoint", "ROOT", "-epoch", "9", "ROOT/exec/a", "9"),
    ("prune", "-checkpoint", "ROOT", "-keep", "1"),
    ("watch", "-checkpoint", "ROOT", "-epoch", "9", "-framework", "hf", "ROOT/saves"),
    ("-version",),
    ("help",),
    ("help", "watch"),
    ("resolve", "-h"),
    ("-h",),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with two publications, and a save that a watch would publish."""
    root = tmp_path / "root"
    for save in ("exec/a", "exec/b", "saves/checkpoint-5"):
        (root / save).mkdir(parents=True)
    (root / "saves/checkpoint-5/trainer_state.json").write_text('{"global_step": 5}')
    for step, save in ((1, "exec/a"), (2, "exec/b")):
        assert call("publish", "-checkpoint", root, "-epoch", "1", root / save, str(step)).status == 0
    return root


def at(root: Path, line: tuple[str, ...]) -> list[str]:
    return [word.replace("ROOT", str(root)) for word in line]


def test_the_program_prints_its_version() -> None:
    """cli.8"""
    for line in ("-version", "--version"):
        assert run(line) == Result(0, f"publish {__version__}\n".encode(), b"")


def test_dots_after_a_link_in_the_root_go_where_the_link_leads(root: Path) -> None:
    """root.4, resolve.3: else a job would start from step 0 beside its saves."""
    (root.parent / "elsewhere" / "root").mkdir(parents=True)
    (root.parent / "elsewhere" / "link").symlink_to(root)
    given = root.parent / "elsewhere" / "link" / ".." / "root"
    assert run("resolve", "-checkpoint", given) == Result(0, bytes(given) + b"/exec/b\n", b"")
    assert run("resolve", "-checkpoint", f"{root}/exec/..") == Result(0, bytes(root) + b"/exec/b\n", b"")


@pytest.mark.parametrize("count", [2, 20, 25])
def test_up_to_twenty_foreign_names_in_the_log_are_listed(root: Path, count: int) -> None:
    """layout.4, cli.5"""
    for number in range(count):
        (root / "pub" / f"foreign{number:02}").touch()
    notes = run("resolve", "-checkpoint", root).notes
    told = [
        f"pub/: unrecognised entry (move it out of the folder): foreign{number:02}" for number in range(min(count, 20))
    ]
    assert notes == told + [f"and {count - 20} more"] * (count > 20)


def test_a_blocked_signal_still_ends_the_program(root: Path) -> None:
    """cli.5, watch.6: the process that starts a watch may have blocked signals while it did."""
    block = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, {2, 15}); os.execv(sys.argv[1], sys.argv[1:])"
    )
    line = [
        "watch",
        "-checkpoint",
        str(root),
        "-epoch",
        "9",
        "-framework",
        "hf",
        "-interval",
        "1h",
        str(root / "saves"),
    ]
    with subprocess.Popen([sys.executable, "-c", block, PROGRAM, *line], env=CLEAN, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"published ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_signal_ends_the_first_process_of_a_container(root: Path) -> None:
    """cli.5, watch.6: there the kernel spares it the default actions."""
    os.mkfifo(root / "saves/checkpoint-5/x")
    line = [
        "watch",
        "-checkpoint",
        str(root),
        "-epoch",
        "9",
        "-framework",
        "hf",
        "-interval",
        "1h",
        str(root / "saves"),
    ]
    contained = ["unshare", "--pid", "--fork", "--kill-child", "--map-root-user", PROGRAM, *line]
    with subprocess.Popen(contained, env=CLEAN, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"published ")
        (inner,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(inner), signal.SIGTERM)
        assert process.wait(60) == 0


def test_the_program_runs_as_a_module(root: Path) -> None:
    line = [sys.executable, "-m", "publish", "resolve", "-checkpoint", str(root)]
    result = subprocess.run(line, env=CLEAN, capture_output=True, check=True)
    assert result.stdout == f"{root}/exec/b\n".encode()


@pytest.mark.parametrize("line", EVERY_ANSWER)
def test_a_result_on_a_full_disk_is_a_failure(root: Path, line: tuple[str, ...]) -> None:
    """cli.7"""
    with Path("/dev/full").open("wb") as full:
        result = run(*at(root, line), stdout=full)
    assert result.status == 1
    assert result.notes == ["cannot write to stdout: No space left on device"]


@pytest.mark.parametrize("line", EVERY_ANSWER)
def test_a_result_into_a_closed_pipe_is_a_failure(root: Path, line: tuple[str, ...]) -> None:
    """cli.7"""
    here, there = os.pipe()
    os.close(here)
    result = run(*at(root, line), stdout=there)
    os.close(there)
    assert result.status == 1
    assert result.notes == ["cannot write to stdout: Broken pipe"]


@pytest.mark.parametrize("line", EVERY_ANSWER)
def test_a_result_for_a_closed_stdout_is_a_failure_and_is_written_nowhere(root: Path, line: tuple[str, ...]) -> None:
    """cli.7"""
    shell = ["/bin/sh", "-c", 'exec "$0" "$@" >&-', PROGRAM, *at(root, line)]
    result = subprocess.run(shell, env=CLEAN, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 1
    assert without_narration(result.stderr) == b"publish: cannot write to stdout: Bad file descriptor\n"
    assert all(entry.stat().st_size == 0 for entry in (root / "pub").iterdir())


def test_nothing_is_written_to_an_entry_if_every_stream_is_closed(root: Path) -> None:
    """cli.7"""
    line = at(root, ("publish", "-checkpoint", "ROOT", "-epoch", "9", "ROOT/exec/a", "9"))
    for _ in range(2):
        shell = ["/bin/sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', PROGRAM, *line]
        subprocess.run(shell, env=CLEAN, check=False)
    assert len(list((root / "pub").iterdir())) == 3
    assert all(entry.stat().st_size == 0 for entry in (root / "pub").iterdir())


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_no_file_or_connection_reuses_the_descriptor_of_a_closed_stream(closed: str) -> None:
    """cli.7: what is meant for stdout would land in it"""
    child = """
import os
from publish.__main__ import _reserve_std_fds
_reserve_std_fds()
os._exit(os.open(os.devnull, os.O_WRONLY))
"""
    shell = ["/bin/sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, child]
    assert subprocess.run(shell, env=CLEAN, check=False).returncode > 2


def test_an_unwritable_stderr_does_not_change_the_status(root: Path) -> None:
    line = at(root, ("publish", "-checkpoint", "ROOT", "-epoch", "1", "ROOT/exec/a", "1"))
    with Path("/dev/full").open("wb") as full:
        assert run(*line, stderr=full).status == 0
        assert run("resolv", stderr=full).status == 2
    shell = ["/bin/sh", "-c", 'exec "$0" "$@" 2>&-', PROGRAM, *line]
    assert subprocess.run(shell, env=CLEAN, check=False).returncode == 0


def test_a_wrong_root_leaves_stdout_empty(tmp_path: Path) -> None:
    """resolve.3"""
    result = run("resolve", "-checkpoint", tmp_path / "not-mounted")
    assert (result.status, result.out) == (1, b"")


def test_a_fault_of_a_directory_is_not_attributed_to_a_store(tmp_path: Path) -> None:
    """s3.13"""
    # Not even root can make a folder in /proc.
    result = run("publish", "-checkpoint", "/proc", "-epoch", "1", "-sync=false", "/proc/sys", "5")
    assert (result.status, result.out) == (1, b"")
    (note,) = result.notes
    assert "/proc/pub" in note
    assert not note.startswith("store:")


HOSTILE = {
    "PYTHONWARNINGS": "error",
    "PYTHONINSPECT": "1",
    "PYTHONINTMAXSTRDIGITS": "640",
    "PYTHONIOENCODING": "ascii",
    "PYTHONDEVMODE": "1",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "LC_ALL": "C",
    "LANG": "C",
    "COLUMNS": "1",
    "HOME": "/proc/self/nowhere",
    "PWD": "/somewhere/else",
    "GODEBUG": "x",
}


def test_foreign_variables_change_nothing(root: Path) -> None:
    """env.2"""
    save = os.fsencode(root) + "/s\u00e9".encode() + b"\xff"
    os.mkdir(save)
    for line in (
        ("resolve", "-checkpoint", root),
        ("resolve", "-checkpoint", "nowhere"),
        ("publish", "-checkpoint", root, "-epoch", "0", save, "3"),
        ("help", "watch"),
        ("resolv\u00e9",),
    ):
        plain = run(*line, cwd=root)
        if line[0] == "publish":
            for entry in (root / "pub").glob("00000000000000000000-*"):
                entry.unlink()
        assert run(*line, cwd=root, env=HOSTILE) == plain


def test_variables_identify_the_execution(root: Path) -> None:
    """env.1"""
    line = ("publish", "-checkpoint", root, root / "exec/a", "9")
    assert b"(epoch 77, step 9, " in run(*line, env={"DISPATCH_EPOCH": "77"}).out


def test_libraries_see_an_empty_environment() -> None:
    """env.2"""
    child = """
import os, sys
from publish import __main__ as program
program._clear_environment()
os.execv(sys.executable, [sys.executable, "-I", "-c", "import os; print(sorted(os.environ))"])
"""
    env = CLEAN | {"AWS_PROFILE": "x", "HTTPS_PROXY": "http://localhost:1", "LC_CTYPE": "C.UTF-8"}
    result = subprocess.run([sys.executable, "-c", child], env=env, capture_output=True, check=True)
    # LC_CTYPE is the second interpreter's own (PEP 538).
    assert result.stdout in {b"['HOME']\n", b"['HOME', 'LC_CTYPE']\n"}


def test_an_internal_error_shows_its_type_and_lines_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cli.9: its text may hold a secret"""

    def break_down(*_: object) -> None:
        raise RuntimeError("canary")

    monkeypatch.setattr(app, "_dispatch", break_down)
    result = call("resolve", "-checkpoint", root)
    assert (result.status, result.out) == (1, b"")
    (note,) = result.notes
    assert note.startswith("internal error, please report it: RuntimeError at app.py:")
    assert "canary" not in note


CHATTY = """
import os, sys
from publish.__main__ import run
from publish.cli.backends import directory, s3

class Dying:
    def __del__(self):
        raise ValueError("canary")

def chatter(*_, **__):
    import logging
    s3.silence_libraries()
    logging.getLogger("some.library").error("canary")
    Dying()
    import warnings
    warnings.warn("canary")
    os._exit(0)

directory._open = chatter
sys.argv = ["publish", "resolve", "-checkpoint", "/"]
run()
"""


def test_log_records_and_warnings_of_libraries_are_not_shown() -> None:
    """cli.4, cli.9"""
    result = subprocess.run([sys.executable, "-W", "error", "-c", CHATTY], env=CLEAN, capture_output=True, check=True)
    assert result.stderr == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_verb_as_a_shell_expects(root: Path, number: signal.Signals) -> None:
    """cli.5: 130 and 143 as a shell shows it, no traceback"""
    # A full pipe for stdout: the program waits in its write until the pipe is read.
    here, there = os.pipe()
    fill(there)
    with start("help", stdout=there) as process:
        assert process.stderr is not None
        until_it_waits_to_write(process.pid)
        process.send_signal(number)
        assert process.wait(60) == -number
        assert process.stderr.read() == b""
    os.close(here)
    os.close(there)


def test_an_ignored_sigint_stays_ignored() -> None:
    """Shells start the background jobs of a script so."""
    here, there = os.pipe()
    fill(there)
    shell = ["/bin/sh", "-c", 'trap "" INT; exec "$0" help', PROGRAM]
    with os.fdopen(here, "rb") as out, subprocess.Popen(shell, env=CLEAN, stdout=there) as process:
        os.close(there)
        until_it_waits_to_write(process.pid)
        process.send_signal(signal.SIGINT)
        assert out.read().endswith(call("help").out)
        assert process.wait() == 0
