"""Signals while a C call holds the interpreter's lock."""

from __future__ import annotations

import signal
import subprocess
import sys

_HOLDS_THE_LOCK = """
import collections, itertools, os, signal
from publish.cli.signals import StopSignal
stop = StopSignal()
os.kill(os.getpid(), signal.SIGTERM)
while not stop.requested: pass
# One C call, from the write on: no instruction of Python's, at which a handler would run, follows it.
written = map(os.write, [1], [b"held"])
collections.deque(itertools.chain(written, itertools.repeat(0)), maxlen=0)
"""


def test_a_second_signal_ends_a_process_whose_lock_a_c_call_holds() -> None:
    """watch.6: the kernel applies the default action; no handler of Python's has to run."""
    with subprocess.Popen([sys.executable, "-c", _HOLDS_THE_LOCK], stdout=subprocess.PIPE) as held:
        assert held.stdout is not None
        try:
            assert held.stdout.read(4) == b"held"
            held.send_signal(signal.SIGTERM)
            assert held.wait(10) == -signal.SIGTERM
        finally:
            held.kill()
