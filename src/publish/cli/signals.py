"""SIGINT and SIGTERM for a watch: the first asks it to stop, the second ends it (watch.6)."""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType
else:
    import _signal as signal  # start-up: without the enums

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Whether a signal has asked to stop, and a wait that ends when one does."""

    def __init__(self, on_request: Callable[[], None] = lambda: None) -> None:
        """Listens from now on, also for a SIGINT that was ignored: `kill -INT` is meant for this watch.

        `on_request` is called in the handler of the first signal.
        """
        self.requested = False
        self._on_request = on_request
        self._wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        # Python runs a handler between two of its own instructions. A signal may arrive just before a wait
        # begins, or on another thread: only the byte that Python's C code writes here then ends the wait.
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)
        # The parent may have blocked them, and children inherit that.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def end_at_second(self) -> None:
        """Lets the kernel end the process at the second signal, whatever holds the interpreter's lock then.

        Apart from the constructor, as it takes a few milliseconds: a watch starts without it.
        """
        if self.requested:
            return
        # A signal that came between the two calls of `_once` would meet the default action, and end the process.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        for number in _SIGNALS:
            _once(number)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def wait(self, seconds: float) -> None:
        """Returns when `seconds`, which may be negative, have passed; at once when a stop is requested."""
        if not self.requested:
            select.select([self._wake_read], [], [], max(seconds, 0))

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.requested:
            os._exit(128 + number)
        self.requested = True
        self._on_request()
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)


def _once(number: int) -> None:
    """Keeps the handler for the first delivery; the kernel applies the default action to the next (SA_RESETHAND).

    Python runs a handler only when it has the interpreter's lock, and a C call may hold that. musl has no such
    function; there the second signal ends the watch only once the handler of the first has run.
    """
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        libc.signal.restype = ctypes.c_void_p
        libc.sysv_signal(number, ctypes.c_void_p(libc.signal(number, None)))
    except (ImportError, AttributeError):
        return
