"""What ends a process while a C call holds the interpreter's lock: the kernel, for no handler of Python's runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from tests.support.private_files import write_private_directory
from tests.support.program import CLEAN, listens

IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--map-root-user")
# The program itself, one function of which calls C with the lock held and says so just before.
PROGRAM = """
import ctypes, importlib, os, sys
from publish.cli import last_resort
module, name = sys.argv.pop(1).rsplit(".", 1)
last_resort.GRACE_SECONDS = float(sys.argv.pop(1))

def hold(*_arguments, **_flags):
    os.write(1, b"held\\n")
    ctypes.PyDLL(None).sleep(600)

package, owner = module.rsplit(".", 1)
setattr(getattr(importlib.import_module(package), owner), name, hold)
from publish.__main__ import run
run()
"""
# One C call, from the write on, that no signal interrupts: no instruction at which a handler would run follows it.
LISTENING = """
import collections, itertools, os
from publish.cli.signals import StopSignal
stop = StopSignal()
stop.end_at_second()
written = map(os.write, [1], [b"held\\n"])
collections.deque(itertools.chain(written, itertools.repeat(0)), maxlen=0)
"""
LIST_OF_S3 = "publish.adapters.s3.store.S3Store.list_entries"
CONTAINERS = pytest.mark.parametrize("container", [(), IN_A_CONTAINER], ids=["process", "process 1"])


@contextmanager
def holding(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """The command, once it holds the lock. It is killed at the end, for nothing else may end it."""
    with subprocess.Popen(command, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def s3_line(folder: Path) -> list[str]:
    fields = {"access_key_id": "k", "secret_access_key": "s", "endpoint": "http://127.0.0.1:9"}
    source = write_private_directory(folder / "creds", fields)
    return ["-checkpoint", "s3://bucket/run", "-creds", f"file:{source}"]


@CONTAINERS
def test_the_deadline_ends_a_verb_whose_lock_a_c_call_holds(tmp_path: Path, container: tuple[str, ...]) -> None:
    """s3.11: by SIGALRM"""
    program = [sys.executable, "-c", PROGRAM, LIST_OF_S3, "0.2", "resolve", *s3_line(tmp_path), "-timeout", "3s"]
    with holding([*container, *program]) as process:
        status = process.wait(60)
    assert status in ({128 + signal.SIGALRM} if container else {-signal.SIGALRM})


def test_a_second_signal_ends_a_watch_that_never_saw_the_first() -> None:
    """watch.6"""
    with holding([sys.executable, "-c", LISTENING]) as process:
        process.send_signal(signal.SIGTERM)
        until_it_is_reset(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


def until_it_is_reset(pid: int) -> None:
    """Returns when the process no longer catches SIGTERM (proc(5)). Fails if it still does after a while."""
    end = monotonic() + 30
    while monotonic() < end:
        if not listens(pid):
            return
    pytest.fail("the handler is still installed")


@CONTAINERS
def test_a_signal_ends_a_verb_whose_lock_a_c_call_holds(tmp_path: Path, container: tuple[str, ...]) -> None:
    """cli.5: at the first, for a verb that does not handle it"""
    program = [sys.executable, "-c", PROGRAM, LIST_OF_S3, "60", "resolve", *s3_line(tmp_path)]
    with holding([*container, *program]) as process:
        pid = process.pid
        if container:
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
        os.kill(pid, signal.SIGTERM)
        status = process.wait(10)
    assert status == (128 + signal.SIGTERM if container else -signal.SIGTERM)


INHERITED = """
import signal, sys
from time import monotonic
from publish.cli.deadline import Deadline
from publish.cli.supervisor import Supervisor
signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
signal.setitimer(signal.ITIMER_REAL, 300)
seen = []
Deadline(monotonic(), 60).run(lambda: seen.append(signal.getitimer(signal.ITIMER_REAL)[0]))
assert 60 < seen[0] <= 65, seen
assert 290 < signal.getitimer(signal.ITIMER_REAL)[0] <= 300
script = "import signal; print(signal.getitimer(0), signal.getsignal(14), 14 in signal.pthread_sigmask(0, []))"
sys.exit(Supervisor([sys.executable.encode(), b"-c", script.encode()], {}, print).wait())
"""


def test_a_command_inherits_neither_the_alarm_nor_its_action() -> None:
    """run.2, s3.11: what publish itself was given stays as it was"""
    done = subprocess.run([sys.executable, "-c", INHERITED], env=CLEAN, capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().split() == ["(0.0,", "0.0)", "1", "True"]


EARLIER = """
import signal
from publish.cli.last_resort import LastResort
signal.setitimer(signal.ITIMER_REAL, 20)
LastResort(60).disarm()
assert 10 < signal.getitimer(signal.ITIMER_REAL)[0] <= 20
resort = LastResort(15)
assert 10 < signal.getitimer(signal.ITIMER_REAL)[0] <= 15
resort.disarm()
assert 15 < signal.getitimer(signal.ITIMER_REAL)[0] <= 20
"""


def test_an_alarm_that_the_caller_set_still_rings() -> None:
    """s3.11: `exec` keeps a timer, and some scripts limit a program so"""
    subprocess.run([sys.executable, "-c", EARLIER], env=CLEAN, check=True, timeout=60)
