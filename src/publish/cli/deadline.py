"""Work with a time limit, whatever it hangs in: a read, a DNS lookup, a dead disk.

Python cannot interrupt a thread that waits in the kernel, so the work has a daemon thread of
its own and the main thread waits for it. A caller that gets a time-out must end the process:
the worker thread is still blocked.
"""

from __future__ import annotations

from time import monotonic

from publish.cli import last_resort
from publish.domain.errors import CredentialsError, PublishError, TimedOut
from publish.domain.light_typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")


class Deadline:
    """The time that a verb or a scan has, and the step it is at, for the message when the time is over."""

    def __init__(self, started: float, limit: float, *, bounded: bool = True) -> None:
        """`started` is a moment of `time.monotonic`; `limit` is `-timeout`; both in seconds.

        `bounded`: whether the limit is in force from the start, or only after `bind`.
        """
        self._started = started
        self._limit = limit
        self._bounded = bounded
        self._step = "start"
        self._error: type[PublishError] = TimedOut

    def restart(self) -> None:
        """Counts from now on."""
        self._started = monotonic()

    def bind(self) -> None:
        """Puts the limit in force."""
        self._bounded = True

    def remaining(self) -> float:
        """Seconds that are left; negative once the time is over."""
        return self._started + self._limit - monotonic()

    def enter_request(self, step: str) -> None:
        """The work sends a request to the store."""
        self._step, self._error = step, TimedOut

    def enter_source(self, name: str) -> None:
        """The work asks a credential source."""
        self._step, self._error = name, CredentialsError

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Raises TimedOut or CredentialsError, by its step, once the time is over.

        Signal handlers run meanwhile. On the main thread a last resort ends the process a little later, if nothing
        runs any more. `run` scans on another thread: what hangs there does not end COMMAND (run.5).
        """
        if not self._bounded:
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

        remaining = min(max(self.remaining(), 0), threading.TIMEOUT_MAX)
        is_main = threading.current_thread() is threading.main_thread()
        resort = last_resort.LastResort(remaining + last_resort.GRACE) if is_main else None
        threading.Thread(target=run, daemon=True).start()
        if not ended.wait(remaining):
            raise self._error(f"{self._step}: out of time (-timeout {self._limit:g}s)")
        if resort is not None:
            resort.disarm()
        for error in errors:
            raise error
        return results[0]
