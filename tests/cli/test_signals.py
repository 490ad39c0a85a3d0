"""How signals stop a watch."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from publish.cli.signals import StopSignal
from tests.support.program import CLEAN

# The C library, as `signals` calls it, and a signal to this process just before a handler is in place again.
CHILD = """
import ctypes, os, signal

real = ctypes.CDLL(None)

class Library:
    signal = real.signal

    def sysv_signal(self, number, handler):
        if number == signal.SIGTERM:
            os.kill(os.getpid(), number)
        return real.sysv_signal(number, handler)

ctypes.CDLL = lambda _name: Library()
from publish.cli.signals import StopSignal

stop = StopSignal()
stop.end_at_second()
stop.wait(60)
print("asked to stop" if stop.requested else "not asked to stop", flush=True)
os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.fixture
def stop() -> Iterator[StopSignal]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield StopSignal()
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_signal_on_another_thread_ends_the_wait(stop: StopSignal) -> None:
    """watch.6: the kernel may hand it to another thread, or to this one just before the wait begins."""
    threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)).start()
    stop.wait(60)
    assert stop.requested


def test_a_wait_after_the_signal_returns_at_once(stop: StopSignal) -> None:
    """watch.6"""
    signal.raise_signal(signal.SIGINT)
    stop.wait(60)
    assert stop.requested


def test_a_signal_while_the_handlers_are_being_set_asks_the_watch_to_stop() -> None:
    """watch.6: the first never ends it; the second does"""
    ended = subprocess.run([sys.executable, "-c", CHILD], env=CLEAN, capture_output=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr, ended.returncode) == (b"asked to stop\n", b"", -2)
