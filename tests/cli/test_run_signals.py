"""Signals that `run` gets, and what becomes of the command (run.3 to run.5)."""

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

from tests.support.program import CLEAN, PROGRAM, start
from tests.support.run_jobs import LISTENING, TRAINING, published, run_line

PASSED_ON = [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT]
# Gives the program its stdin as its terminal.
LOGIN = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
FILL_STDERR = """
import os
os.set_blocking(2, False)
try:
    while True:
        os.write(2, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(2, True)
"""


@contextmanager
def listening(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    with start(*run_line(root), sys.executable, "-c", LISTENING) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", PASSED_ON)
def test_a_signal_is_passed_on_and_the_watch_goes_on(root: Path, number: signal.Signals) -> None:
    """run.4: what the command saves after it is published"""
    script = (
        LISTENING.replace("!= 12", "is None")
        + f"import sys, subprocess; sys.exit(subprocess.call(['sh', '-c', {TRAINING!r}]) or number)"
    )
    with start(*run_line(root), sys.executable, "-c", script, env={"STEPS": "1"}) as process:
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


@contextmanager
def in_a_terminal(root: Path, program: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`run` with a program that listens, and the keyboard of its terminal."""
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-c", LOGIN, PROGRAM, *map(str, run_line(root)), sys.executable, "-c", program]
    with subprocess.Popen(
        command, env=CLEAN, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        os.close(terminal)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process, keyboard
        process.send_signal(signal.SIGUSR2)
        assert process.wait(60) == 0
    os.close(keyboard)


def test_a_terminals_interrupt_reaches_the_command_once(root: Path) -> None:
    """run.4: the terminal sends it to both, and publish does not pass it on"""
    with in_a_terminal(root, LISTENING) as (process, keyboard):
        assert process.stdout is not None
        os.write(keyboard, b"\x03")
        assert process.stdout.readline() == b"2\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"10\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"2\n"


def test_a_terminals_interrupt_is_passed_on_to_a_command_that_left_the_group(root: Path) -> None:
    """run.4"""
    with in_a_terminal(root, "import os; os.setpgid(0, 0)\n" + LISTENING) as (process, keyboard):
        assert process.stdout is not None
        os.write(keyboard, b"\x03")
        assert process.stdout.readline() == b"2\n"


def test_under_nohup_the_command_ignores_sighup(root: Path) -> None:
    """run.4: as it would without publish"""
    script = "echo ready; read line; exit 4"
    words = ["nohup", PROGRAM, *map(str, run_line(root)), "sh", "-c", script]
    with subprocess.Popen(
        words, env=CLEAN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGHUP)
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 4


def test_as_process_1_it_reaps_orphans_and_passes_signals_on(root: Path) -> None:
    """run.4: the first process of a container, here of a namespace of its own"""
    script = """
        (true &) # an orphan as soon as its parent has ended
        while grep -qs '^State:.Z' /proc/[0-9]*/status; do :; done
        trap 'exit 6' TERM
        echo ready
        while :; do sleep 0.01; done
    """
    # In a namespace of users, too: there a user without privilege may make the other two.
    unshare = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
    words = [*unshare, PROGRAM, *map(str, run_line(root)), "sh", "-c", script]
    with subprocess.Popen(words, env=CLEAN, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(inside[0]), signal.SIGTERM)
        assert process.wait(60) == 6


def test_what_does_not_end_on_sigterm_is_killed_a_while_later() -> None:
    """run.5"""
    script = """
import os, sys
from publish.cli import supervisor
supervisor.KILL_AFTER_SECONDS = 0.05
here, there = os.pipe()
os.set_inheritable(there, True)
command = [b"sh", b"-c", b"trap '' TERM; echo >&%d; while :; do sleep 0.01; done" % there]
one = supervisor.Supervisor(command, {b"PATH": b"/bin:/usr/bin"}, print)
os.read(here, 1)
one.end()
sys.exit(one.wait())
"""
    assert subprocess.run([sys.executable, "-c", script], env=CLEAN, timeout=60, check=False).returncode == 137


def test_the_work_after_the_command_is_bounded() -> None:
    """run.3: a scan that hangs, on a dead disk perhaps"""
    script = """
import sys
from publish.cli import supervisor
one = supervisor.Supervisor([b"true"], {b"PATH": b"/bin:/usr/bin"}, print)
assert one.wait() == 0
sys.exit(0 if one.wait_after(lambda: False, 0.05) is False else 1)
"""
    subprocess.run([sys.executable, "-c", script], env=CLEAN, timeout=60, check=True)


def test_a_second_signal_ends_the_final_scan(root: Path) -> None:
    """run.4, nfs.5: the scan waits to say what it published"""
    here, there = os.pipe()
    with os.fdopen(here, "rb"):
        words = (
            sys.executable,
            "-c",
            FILL_STDERR
            + f"\nimport subprocess; subprocess.call(['sh', '-c', {TRAINING!r}]); print('done', flush=True)",
        )
        with start(*run_line(root, "-interval", "1h"), *words, env={"STEPS": "1"}, stderr=there) as process:
            os.close(there)
            assert process.stdout is not None
            assert process.stdout.readline() == b"done\n"
            while published(root) == 0:
                assert process.poll() is None
            process.terminate()
            process.terminate()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) in {128 + signal.SIGTERM, 128 + signal.SIGINT}
