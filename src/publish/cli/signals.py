"""A watch's ear for SIGINT and SIGTERM: the first asks it to stop, the second ends it (watch.6)."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether a signal has asked to stop, and a wait that ends when one does."""

    def __init__(self) -> None:
        """Listens from now on, also for a SIGINT that was ignored: `kill -INT` means this watch."""
        self.asked = False
        self._bell, ring = os.pipe()
        os.set_blocking(ring, False)
        # Python calls a handler between two of its own instructions. The kernel may call at the last moment
        # before a wait begins, or on another thread: only what C does then ends the wait.
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        for number in _ENDING:
            signal.signal(number, self._heard)
        # Whoever started it may have blocked them for a moment of its own, and children inherit that.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def wait(self, seconds: float) -> None:
        """Returns when `seconds`, which may be below zero, have passed; at once when it is asked to stop."""
        if not self.asked:
            select.select([self._bell], [], [], max(seconds, 0))

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            # Still here: the kernel spares the first process of a container (pid_namespaces(7)).
            os._exit(128 + number)
        self.asked = True
