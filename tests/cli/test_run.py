"""`run` as a job script uses it, with real processes (run.1 to run.6, watch.10)."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.program import CLEAN, PROGRAM, run, start

PASSED_ON = [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT]

# Saves the steps that it is given.
TRAINING = """
for step in $STEPS; do
    mkdir -p "$DISPATCH_SAVES/checkpoint-$step"
    echo '{"global_step": '$step'}' >"$DISPATCH_SAVES/checkpoint-$step/trainer_state.json"
done
"""
# Says which signals it gets; SIGUSR2 is the last.
LISTENING = """
import os, signal
numbers = {1, 2, 10, 12, 15}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
os.write(1, b"ready\\n")
while (number := signal.sigwait(numbers)) != 12:
    os.write(1, b"%d\\n" % number)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def line(root: Path, *flags: str) -> list[str | Path]:
    return ["run", "-checkpoint", root, "-framework", "hf", "-interval", "20ms", *flags, "--"]


def published(root: Path) -> int:
    return len(list((root / "pub").iterdir())) if (root / "pub").exists() else 0


@contextmanager
def listening(root: Path, *flags: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    with start(*line(root, *flags), sys.executable, "-c", LISTENING, **options) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def test_one_command_line_starts_and_starts_again(root: Path) -> None:
    """run.1: what the first execution saved, the last moment included, is what the second resumes from"""
    first = run(*line(root, "-attempt", "a"), "sh", "-c", TRAINING, env={"STEPS": "1 2"})
    assert (first.status, first.out) == (0, b"")
    assert sum(note.startswith("published ") for note in first.notes) == 2
    second = run(*line(root), "sh", "-c", 'echo "$DISPATCH_EPOCH $DISPATCH_RESUME"')
    assert (second.status, second.out) == (0, f"2 {root}/exec/a/checkpoint-2\n".encode())


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
    command = [PROGRAM, *line(root, "-attempt", "a"), "cat", "/proc/self/environ"]
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
        *line(root), "sh", "-c", script, env={"STEPS": "1", "MORE": str(there)}, stdin=subprocess.PIPE, pass_fds=[there]
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
        ["sh", "-c", script, "sh", PROGRAM, *line(root), "sh", "-c", probe], env=CLEAN, capture_output=True, check=True
    )
    assert ended.stdout == b"status 5\n"


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
def test_the_status_is_the_commands(root: Path, script: str, status: int) -> None:
    """run.3"""
    result = run(*line(root), "sh", "-c", TRAINING + script, env={"STEPS": "1"})
    assert result.status == status
    assert published(root) == 1


@pytest.mark.parametrize(
    ("name", "status"), [("nonsuch", 127), ("./nonsuch", 127), ("", 127), ("/", 126), ("script", 126)]
)
def test_a_command_that_cannot_be_started(root: Path, name: str, status: int) -> None:
    """run.3"""
    (root / "script").write_text("")
    result = run(*line(root), name, env={"PATH": f"{root}:{os.defpath}"})
    assert (result.status, result.out) == (status, b"")
    assert result.notes[-1].startswith("cannot start COMMAND (")


def test_the_command_is_found_on_its_own_path(root: Path) -> None:
    """run.2"""
    (root / "train").write_text("#!/bin/sh\nexit 9\n")
    (root / "train").chmod(0o755)
    assert run(*line(root), "train", env={"PATH": f"/nonsuch:{root}"}).status == 9


def test_nothing_is_started_if_the_execution_cannot_begin(root: Path) -> None:
    """run.3"""
    result = run(*line(root.parent / "elsewhere"), "touch", root / "started")
    assert (result.status, result.out) == (1, b"")
    assert not (root / "started").exists()


@pytest.mark.parametrize("number", PASSED_ON)
def test_a_signal_is_passed_on_and_the_watch_goes_on(root: Path, number: signal.Signals) -> None:
    """run.4: what the command saves after it is published"""
    script = (
        LISTENING.replace("!= 12", "is None")
        + f"import sys, subprocess; sys.exit(subprocess.call(['sh', '-c', {TRAINING!r}]) or number)"
    )
    with start(*line(root), sys.executable, "-c", script, env={"STEPS": "1"}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == b""
        assert process.wait(60) == number
    assert published(root) == 1


def test_a_command_that_ignores_sigterm_is_waited_for(root: Path) -> None:
    """run.4"""
    with listening(root) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.terminate()
            assert process.stdout.readline() == b"15\n"
        process.send_signal(signal.SIGUSR2)
        assert process.wait(60) == 0


def test_a_terminals_interrupt_reaches_the_command_once(root: Path) -> None:
    """run.4: the terminal sends it to both, and publish does not pass it on"""
    here, there = pty.openpty()
    login = "import os, sys, fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    words = [*map(str, line(root)), sys.executable, "-c", LISTENING]
    command = [sys.executable, "-c", login, PROGRAM, *words]
    with subprocess.Popen(
        command, env=CLEAN, stdin=there, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        os.close(there)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.write(here, b"\x03")
        assert process.stdout.readline() == b"2\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"10\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"2\n"
        process.send_signal(signal.SIGUSR2)
        assert process.wait(60) == 0
    os.close(here)


def test_a_terminals_interrupt_is_passed_on_to_a_command_that_left_the_group(root: Path) -> None:
    """run.4"""
    here, there = pty.openpty()
    login = "import os, sys, fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    words = [*map(str, line(root)), sys.executable, "-c", "import os; os.setpgid(0, 0)\n" + LISTENING]
    command = [sys.executable, "-c", login, PROGRAM, *words]
    with subprocess.Popen(
        command, env=CLEAN, stdin=there, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        os.close(there)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.write(here, b"\x03")
        assert process.stdout.readline() == b"2\n"
        process.send_signal(signal.SIGUSR2)
        assert process.wait(60) == 0
    os.close(here)


def test_under_nohup_the_command_ignores_sighup(root: Path) -> None:
    """run.4: as it would without publish"""
    script = "echo ready; read line; exit 4"
    words = ["nohup", PROGRAM, *map(str, line(root)), "sh", "-c", script]
    with subprocess.Popen(
        words, env=CLEAN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGHUP)
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 4


def test_what_the_command_leaves_behind_is_not_waited_for(root: Path) -> None:
    """run.4"""
    result = run(*line(root), "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
    assert result.status == 0
    os.kill(int(result.out), signal.SIGKILL)


def test_a_command_that_closes_its_streams_is_watched(root: Path) -> None:
    """run.1"""
    result = run(*line(root), "sh", "-c", "exec <&- >&- 2>&-;" + TRAINING, env={"STEPS": "1"})
    assert result.status == 0
    assert published(root) == 1


def test_as_process_1_it_reaps_orphans_and_passes_signals_on(root: Path) -> None:
    """run.4: the first process of a container, here of a namespace of its own"""
    script = """
        (true &) # an orphan as soon as its parent has ended
        while grep -qs '^State:.Z' /proc/[0-9]*/status; do :; done
        trap 'exit 6' TERM
        echo ready
        while :; do sleep 0.01; done
    """
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    words = [*unshare, PROGRAM, *map(str, line(root)), "sh", "-c", script]
    with subprocess.Popen(words, env=CLEAN, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(inside[0]), signal.SIGTERM)
        assert process.wait(60) == 6


def test_a_scan_that_fails_does_not_stop_the_training(root: Path) -> None:
    """run.5: it is said once, tried again, and what it missed is published"""
    script = """
        mkdir -p "$DISPATCH_SAVES/checkpoint-1"
        echo '[]' >"$DISPATCH_SAVES/checkpoint-1/trainer_state.json"
        read line
    """
    with start(
        *line(root, "-verify=false"), "sh", "-c", script + TRAINING, env={"STEPS": "1"}, stdin=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        while b"a scan failed, trying again" not in process.stderr.readline():
            pass
        _, err = process.communicate(b"\n", timeout=60)
        assert process.returncode == 0
    assert b"a scan failed" not in err
    assert published(root) == 1


@pytest.mark.parametrize(("ending", "status"), [("exit 0", 1), ("exit 7", 7)])
def test_a_last_scan_that_fails_is_a_failure(root: Path, ending: str, status: int) -> None:
    """run.3: unless the command has failed itself"""
    script = 'mkdir -p "$DISPATCH_SAVES/checkpoint-1"; echo "[]" >"$DISPATCH_SAVES/checkpoint-1/trainer_state.json"; '
    result = run(*line(root, "-verify=false"), "sh", "-c", script + ending)
    assert result.status == status
    assert result.notes[-1].startswith("run: the last scan failed")


def test_with_strict_a_scan_that_fails_ends_the_command(root: Path) -> None:
    """run.5"""
    script = """
        trap 'echo told; exit 0' TERM
        mkdir -p "$DISPATCH_SAVES/checkpoint-1"
        echo '[]' >"$DISPATCH_SAVES/checkpoint-1/trainer_state.json"
        while :; do sleep 0.01; done
    """
    result = run(*line(root, "-verify=false", "-strict"), "sh", "-c", script)
    assert (result.status, result.out) == (1, b"told\n")


def test_what_does_not_end_on_sigterm_is_killed_a_while_later() -> None:
    """run.5"""
    script = """
import sys
from publish.cli import supervisor
supervisor.KILL_AFTER = 0.05
one = supervisor.Supervisor([b"sh", b"-c", b"trap '' TERM; while :; do sleep 0.01; done"], {b"PATH": b"/bin:/usr/bin"})
one.end()
sys.exit(one.wait())
"""
    assert subprocess.run([sys.executable, "-c", script], env=CLEAN, timeout=60, check=False).returncode == 137


def test_the_work_after_the_command_is_bounded() -> None:
    """run.3: a scan that hangs, on a dead disk perhaps"""
    script = """
import sys
from publish.cli import supervisor
one = supervisor.Supervisor([b"true"], {b"PATH": b"/bin:/usr/bin"})
assert one.wait() == 0
sys.exit(0 if one.wait_after(lambda: False, 0.05) is False else 1)
"""
    subprocess.run([sys.executable, "-c", script], env=CLEAN, timeout=60, check=True)


def test_a_second_signal_ends_the_last_scan(root: Path) -> None:
    """run.4, nfs.5: the scan waits to say what it published"""
    here, there = os.pipe()
    with os.fdopen(here, "rb"):
        fill_it = "import os; os.set_blocking(2, False)\ntry:\n    while True: os.write(2, b'x' * 4096)\nexcept BlockingIOError: os.set_blocking(2, True)"
        words = (
            sys.executable,
            "-c",
            fill_it + f"\nimport subprocess; subprocess.call(['sh', '-c', {TRAINING!r}]); print('done')",
        )
        with start(*line(root, "-interval", "1h"), *words, env={"STEPS": "1"}, stderr=there) as process:
            os.close(there)
            assert process.stdout is not None
            assert process.stdout.read() == b"done\n"
            while published(root) == 0:
                assert process.poll() is None
            process.terminate()
            process.terminate()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) in {128 + signal.SIGTERM, 128 + signal.SIGINT}


def test_only_node_0_watches(root: Path) -> None:
    """run.6: the others get the same answer"""
    script = TRAINING + 'echo "$DISPATCH_EPOCH"'
    other = run(*line(root, "-attempt", "a", "-node", "1"), "sh", "-c", script, env={"STEPS": "1"})
    assert (other.status, other.out, other.err) == (0, b"1\n", b"")
    assert published(root) == 0
    first = run(*line(root, "-attempt", "a", "-node", "0"), "sh", "-c", script, env={"STEPS": "2"})
    assert (first.status, first.out) == (0, b"1\n")
    assert published(root) == 2


def test_with_keep_old_saves_are_removed(root: Path) -> None:
    """watch.10: on stderr, as all that publish says"""
    result = run(*line(root, "-attempt", "a", "-keep", "1"), "sh", "-c", TRAINING, env={"STEPS": "1 2 3"})
    assert (result.status, result.out) == (0, b"")
    assert [note.rpartition("/")[2] for note in result.notes if note.startswith("removed ")] == [
        "checkpoint-1",
        "checkpoint-2",
    ]
    assert published(root) == 1


def test_keep_every_needs_keep(root: Path) -> None:
    """watch.10"""
    result = run(*line(root, "-keep-every", "5"), "true")
    assert result.status == 2
    assert result.notes[0] == "-keep-every needs -keep"


def test_a_prune_that_fails_does_not_end_the_watch(root: Path) -> None:
    """watch.10"""
    (root / ".publish").mkdir()
    (root / ".publish/prune").write_text("not a folder")
    result = run(*line(root, "-keep", "1"), "sh", "-c", TRAINING, env={"STEPS": "1"})
    assert any(note.startswith("prune: ") for note in result.notes)
