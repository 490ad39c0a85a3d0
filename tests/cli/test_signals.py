"""How signals stop a watch."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from publish.cli.signals import StopSignal


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
