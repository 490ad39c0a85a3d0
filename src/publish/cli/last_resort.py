"""Ends a process whose time is over even if the interpreter is stuck in a C call.

The deadline (deadline.py) needs the interpreter's lock. A C call that holds it, a parser perhaps, would also hold up
the deadline. So an alarm is set for a little later: SIGALRM at its default action, by which the kernel ends the
process (status 142).
"""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # start-up: without the enums

# How long after the deadline, in seconds: on a busy machine the message takes a while.
GRACE_SECONDS = 5.0
_SOON_SECONDS = 0.001


class LastResort:
    """An alarm that ends the process, unless it is disarmed in time. For the main thread."""

    def __init__(self, seconds: float) -> None:
        """Arms it, unless one that the process was started with rings before (execve(2) keeps timers)."""
        self._began = monotonic()
        self._given, self._interval = signal.getitimer(signal.ITIMER_REAL)
        self._is_armed = not 0 < self._given <= seconds
        if self._is_armed:
            self._action = signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM,))
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def disarm(self) -> None:
        """Leaves the timer, the action and the mask as they would be without it: a command may inherit them."""
        if not self._is_armed:
            return
        remaining = self._given and max(self._given - (monotonic() - self._began), _SOON_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, remaining, self._interval)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        signal.signal(signal.SIGALRM, self._action)
