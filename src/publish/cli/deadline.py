"""Work with a time limit, whatever it hangs in: a read, a DNS lookup, a dead disk.

Python cannot interrupt a thread that waits in the kernel, so the work has a daemon thread of
its own and the main thread waits for it. A caller that gets a time-out must end the process:
the worker thread is still blocked.
"""

from __future__ import annotations

from time import monotonic

from publish.cli.last_resort import GRACE_SECONDS, LastResort
from publish.cli.threads import start_thread
from publish.domain.errors import CredentialsError, PublishError, TimedOut
from publish.domain.light_typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# How often the main thread looks whether a signal handler has bound the deadline.
_POLL_SECONDS = 0.2
_FOREVER_SECONDS = float("inf")


class Deadline:
    """The time that a verb or a scan has, and the step it is at, for the message when the time is over."""

    def __init__(self, started: float, limit: float | None, *, bounded: bool = True) -> None:
        """`started` is a moment of `time.monotonic`; `limit` is `-timeout`; both in seconds.

        `limit` None: there is none, and work runs on the thread that asks for it.
        `bounded`: whether the limit is in force from the start, or only after `bind`.
        """
        self._started = started
        self._limit = _FOREVER_SECONDS if limit is None else limit
        self._runs_in_place = limit is None
        self._bounded = bounded
        self._bound_at: float | None = None
        self._step = "start"
        self._error: type[PublishError] = TimedOut

    def restart(self) -> None:
        """Counts from now on; but all that is left after `bind` has the limit once."""
        self._started = monotonic()

    def bind(self) -> None:
        """Gives the work under way and all that follows the limit, from now on. A second call changes nothing.

        May be called in a signal handler.
        """
        if self._bound_at is None:
            self._bound_at = monotonic()

    @property
    def started(self) -> float:
        """The moment from which the limit counts."""
        if self._bound_at is None:
            return self._started
        return min(self._started, self._bound_at) if self._bounded else self._bound_at

    def remaining(self) -> float:
        """Seconds that are left; negative once the time is over."""
        if not self._bounded and self._bound_at is None:
            return _FOREVER_SECONDS
        return self.started + self._limit - monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the time that `bind` has left is over."""
        return self._bound_at is not None and monotonic() >= self._bound_at + self._limit

    def enter_request(self, step: str) -> None:
        """The work sends a request to the store."""
        self._step, self._error = step, TimedOut

    def enter_source(self, name: str) -> None:
        """The work asks a credential source."""
        self._step, self._error = name, CredentialsError

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Raises TimedOut or CredentialsError, by its step, once the time is over.

        Raises CannotStartThread.

        Signal handlers run meanwhile. On the main thread a last resort ends the process a little later, if nothing
        runs any more. `run` scans on another thread: what hangs there does not end COMMAND (run.5).
        """
        if self._runs_in_place:
            return work()

        import threading  # start-up: a verb on a directory needs none

        results: list[T] = []
        errors: list[BaseException] = []
        ended = threading.Event()

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
                errors.append(error)
            ended.set()

        resort = self._arm(None)
        # The worker may still be ending when `run` starts COMMAND: the kernel would hand it the SIGCHLD that the main
        # thread is about to wait for, and there it would be lost.
        start_thread(run)
        # A signal handler may bind the deadline meanwhile, and cannot wake the thread that it runs on.
        while not ended.wait(min(max(self.remaining(), 0), _POLL_SECONDS)):
            if self.remaining() <= 0:
                raise self._error(f"{self._step}: out of time (-timeout {self._limit:g}s)")
            resort = self._arm(resort)
        if resort is not None:
            resort.disarm()
        for error in errors:
            raise error
        return results[0]

    def _arm(self, armed: LastResort | None) -> LastResort | None:
        """The last resort of the main thread, which alone can have one, once the time is bounded."""
        import threading  # start-up, as above

        bounded = self.remaining() < _FOREVER_SECONDS
        if armed is not None or not bounded or threading.current_thread() is not threading.main_thread():
            return armed
        return LastResort(max(self.remaining(), 0) + GRACE_SECONDS)
