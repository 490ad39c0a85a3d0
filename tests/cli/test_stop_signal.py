"""The signals of a watch, in the moments in which a test from outside hardly ever meets them (watch.6)."""

from __future__ import annotations

import subprocess
import sys

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


def test_a_signal_while_the_handlers_are_being_set_asks_the_watch_to_stop() -> None:
    """watch.6: the first never ends it; the second does"""
    ended = subprocess.run([sys.executable, "-c", CHILD], env=CLEAN, capture_output=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr, ended.returncode) == (b"asked to stop\n", b"", -2)
