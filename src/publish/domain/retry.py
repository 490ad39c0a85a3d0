"""The retry policy: whether a failed request is sent again, and after how long. Pure arithmetic on times."""

from __future__ import annotations

from publish.domain.errors import Conflict, NotApplied, OutcomeUnknown, StoreFault, Unreachable
from publish.domain.light_typing import NamedTuple

# Bounds, in seconds, of the waits after the first, second and third conflict (s3.10).
CONFLICT_WAITS = ((0.05, 0.1), (0.1, 0.2), (0.2, 0.4))
FIRST_WAIT_SECONDS = 0.2
MAX_WAIT_SECONDS = 10.0
# The part of -timeout for which a server that accepts no connection is tried (s3.8).
UNREACHABLE_SHARE = 0.1
# An intercontinental connection takes most of a second.
MIN_CONNECT_TIMEOUT = 1.0


class RetryLimits(NamedTuple):
    """How long requests are retried, in seconds."""

    total: float
    """Of all requests together, counted from the start of the command or scan."""

    unreachable: float
    """Of one request to a server that accepts no connection."""

    set_by: str = "-timeout "
    """Where `total` comes from, for a message that gives it."""

    @classmethod
    def for_timeout(cls, timeout: float, *, long_running: bool = False) -> RetryLimits:
        """The limits under `-timeout`. `long_running`: outlive a restart of the store (s3.8)."""
        return cls(timeout, timeout if long_running else timeout * UNREACHABLE_SHARE)

    @property
    def connect_timeout(self) -> float:
        """Seconds for one attempt to connect."""
        return max(self.unreachable, MIN_CONNECT_TIMEOUT)


class Attempts(NamedTuple):
    """The faults that one request has met so far."""

    conflicts: int = 0
    failures: int = 0
    unreachable_since: float | None = None

    def record(self, fault: StoreFault, sent: float) -> Attempts:
        """Adds the fault of an attempt that was sent at the time `sent`."""
        if isinstance(fault, Conflict):
            return self._replace(conflicts=self.conflicts + 1, unreachable_since=None)
        if not isinstance(fault, Unreachable):
            return self._replace(failures=self.failures + 1, unreachable_since=None)
        since = sent if self.unreachable_since is None else self.unreachable_since
        return self._replace(failures=self.failures + 1, unreachable_since=since)


def next_wait(fault: StoreFault, attempts: Attempts, now: float, limits: RetryLimits) -> tuple[float, float] | None:
    """The bounds, in seconds, of the wait before the next attempt; None: give up and raise `fault`.

    `attempts` includes `fault`. The waits double up to MAX_WAIT_SECONDS; jitter spreads each over its upper half.
    """
    if isinstance(fault, Conflict):
        return CONFLICT_WAITS[attempts.conflicts - 1] if attempts.conflicts <= len(CONFLICT_WAITS) else None
    if not isinstance(fault, NotApplied | OutcomeUnknown):
        return None
    if attempts.unreachable_since is not None and now - attempts.unreachable_since >= limits.unreachable:
        return None
    # 2**16 exceeds MAX_WAIT_SECONDS already; the cap keeps the power within a float's range.
    high = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(attempts.failures - 1, 16))
    return high / 2, high
