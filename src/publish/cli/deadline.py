"""Work that may take so long and no longer, whatever it hangs in: a read, a lookup of a name, a dead disk.

Python cannot interrupt a thread that waits in the kernel, so the work has a daemon thread of
its own and the main thread waits for it. Who is told that time is over must end the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

from publish.domain.errors import CredentialsError, PublishError, TimedOut

T = TypeVar("T")


class Deadline:
    """The time that a verb or a scan has, and what it is at, for the message when time is over."""

    def __init__(self, started: float, limit: float) -> None:
        """`started` is a moment of `time.monotonic`; `limit` is `-timeout`; both in seconds."""
        self._started = started
        self._limit = limit
        self._step = "start"
        self._error: type[PublishError] = TimedOut

    def restart(self) -> None:
        """Counts from now on."""
        self._started = monotonic()

    def left(self) -> float:
        """Seconds that are left, perhaps less than none."""
        return self._started + self._limit - monotonic()

    def at_request(self, step: str) -> None:
        """The work sends a request to the store."""
        self._step, self._error = step, TimedOut

    def at_source(self, name: str) -> None:
        """The work asks a credential source."""
        self._step, self._error = name, CredentialsError

    def hold(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Raises TimedOut or CredentialsError, by what it is at, once time is over.

        Signal handlers run meanwhile.
        """
        outcome: _Outcome[T] = _Outcome()
        ended = threading.Event()

        def run() -> None:
            try:
                outcome.value = work()
            except BaseException as error:  # noqa: BLE001  (raised again where it is waited for)
                outcome.error = error
            ended.set()

        threading.Thread(target=run, daemon=True).start()
        if not ended.wait(min(max(self.left(), 0), threading.TIMEOUT_MAX)):
            raise self._error(f"{self._step}: out of time (-timeout {self._limit:g}s)")
        if outcome.error is not None:
            raise outcome.error
        return outcome.value


class _Outcome(Generic[T]):
    """What the work came to: one of the two is set when it has ended."""

    value: T
    error: BaseException | None = None
