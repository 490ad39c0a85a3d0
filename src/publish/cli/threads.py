"""Threads beside the main thread, which alone takes the signals of the process."""

from __future__ import annotations

from publish.domain.errors import CannotStartThread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # start-up: without the enums


def start_thread(work: Callable[[], None]) -> None:
    """Runs `work` on a daemon thread to which the kernel hands no signal. Raises CannotStartThread."""
    import threading  # start-up: a verb on a directory needs none

    # A thread inherits the mask of the one that starts it (pthread_sigmask(3)).
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        threading.Thread(target=work, daemon=True).start()
    except RuntimeError as error:  # the limit on processes (pthread_create(3), EAGAIN)
        raise CannotStartThread(
            "cannot start a thread (raise the limit on processes: ulimit -u, or that of the container)"
        ) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
