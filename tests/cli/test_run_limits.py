"""`run` where the system refuses it something: a thread, a signal, an end (run.4, run.5)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.program import CLEAN, run
from tests.support.run_jobs import TRAINING, published, run_line

# The program, in which something fails as long as a file is there.
SPOILED = """
import os, sys, threading
import publish.__main__ as program
from publish.domain.watch import Watcher
def spoil(owner, name, error, is_meant):
    real = getattr(owner, name)
    def call(self):
        if os.path.exists(FLAG) and is_meant(self):
            raise error
        return real(self)
    setattr(owner, name, call)
FLAG = sys.argv.pop(1)
NO_THREAD = RuntimeError("can't start new thread")
"""
SPOIL_THREADS = "spoil(threading.Thread, 'start', NO_THREAD, lambda thread: True)"
SPOIL_SCANS = "spoil(Watcher, 'scan', ValueError('a secret'), lambda watcher: True)"
SPOIL_THE_WATCH = "spoil(threading.Thread, 'start', NO_THREAD, lambda thread: 'WatchBeside' in repr(thread._target))"
NO_THREAD = b"publish: cannot start a thread (raise the limit on processes: ulimit -u, or that of the container)\n"


@contextmanager
def spoiled(spoil: str, flag: Path, *words: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", f"{SPOILED}{spoil}\nprogram.run()", flag, *words],
        env=CLEAN | {"FLAG": str(flag), "STEPS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(SPOIL_THREADS, NO_THREAD), (SPOIL_SCANS, b"publish: internal error, please report it: ValueError at ")],
)
def test_a_watch_outlives_what_fails_for_a_while(root: Path, tmp_path: Path, spoil: str, said: bytes) -> None:
    """run.5: a container's limit on processes, which the training uses up; a fault of publish's own"""
    script = 'touch "$FLAG"; read line; rm "$FLAG"; ' + TRAINING + "exit 3"
    with spoiled(spoil, tmp_path / "flag", *run_line(root, "-attempt", "a"), "sh", "-c", script) as process:
        assert process.stderr is not None
        while not (line := process.stderr.readline()).startswith(said):
            assert line
        assert process.stderr.readline() == b"publish: run: a scan failed, trying again\n"
        _, err = process.communicate(b"\n", timeout=60)
        assert process.returncode == 3
    assert b"a secret" not in line + err
    assert published(root) == 1


def test_with_strict_a_fault_of_any_kind_ends_the_command(root: Path, tmp_path: Path) -> None:
    """run.5"""
    script = 'trap "rm $FLAG; exit 0" TERM; touch "$FLAG"; while kill -0 $PPID; do sleep 0.01; done'
    with spoiled(SPOIL_SCANS, tmp_path / "flag", *run_line(root, "-strict"), "sh", "-c", script) as process:
        process.communicate(timeout=30)
        assert process.returncode == 1


def test_nothing_starts_without_a_thread_for_the_watch(root: Path, tmp_path: Path) -> None:
    """run.5: COMMAND would run unwatched"""
    flag = tmp_path / "flag"
    flag.touch()
    with spoiled(SPOIL_THE_WATCH, flag, *run_line(root), "echo", "started") as process:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (1, b"")
    assert err.endswith(NO_THREAD)


SUPERVISED = """
import os, signal, sys
from publish.cli import supervisor
sent, really_send = [], os.kill
def send(child, number):
    if child == os.getpid():
        return really_send(child, number)
    sent.append(signal.Signals(number).name)
    refuse(child, number)
supervisor.os.kill = send
supervisor.KILL_AFTER_SECONDS = 0.05
here, there = os.pipe()
command = [b"sh", b"-c", b"read line <&%d; exit 9" % here]
os.set_inheritable(here, True)
said = []
one = supervisor.Supervisor(command, {b"PATH": b"/bin:/usr/bin"}, said.append)
"""


def supervised(script: str) -> None:
    subprocess.run([sys.executable, "-c", SUPERVISED + script], env=CLEAN, timeout=60, check=True)


def test_a_signal_that_the_kernel_refuses_is_reported() -> None:
    """run.4: COMMAND runs as another user, as under sudo"""
    supervised("""
def refuse(child, number):
    os.write(there, b"\\n")
    raise PermissionError(1, "Operation not permitted")
os.kill(os.getpid(), signal.SIGHUP)
assert one.wait() == 9
assert said == ["run: cannot pass SIGHUP on to COMMAND (Operation not permitted), which goes on"], said
""")


def test_a_command_that_does_not_end_is_killed_once() -> None:
    """run.5: one that waits for a dead disk would otherwise keep a processor busy, too"""
    supervised("""
def refuse(child, number):
    if number == signal.SIGKILL:
        os.write(there, b"\\n")
one.end()
assert one.wait() == 9
assert sent == ["SIGTERM", "SIGKILL"], sent
""")


def test_with_strict_the_status_is_the_commands_if_only_the_final_scan_fails(root: Path) -> None:
    """run.3, run.5"""
    saves = root / "exec/a"
    (saves / "checkpoint-1").mkdir(parents=True)
    (saves / "checkpoint-1/trainer_state.json").write_text('{"global_step": 1}')
    script = """
        until [ -n "$(ls "${DISPATCH_SAVES%/exec/a}/pub" 2>/dev/null)" ]; do :; done
        mkdir "$DISPATCH_SAVES/checkpoint-2"; echo '[]' >"$DISPATCH_SAVES/checkpoint-2/trainer_state.json"
        exit 7
    """
    result = run(*run_line(root, "-attempt", "a", "-verify=false", "-strict", "-interval", "1h"), "sh", "-c", script)
    assert result.status == 7
    assert result.notes[-1].startswith("run: the final scan failed")
