"""Whether a failed request is sent again, and after how long. Pure: times come in, waits go out."""

from __future__ import annotations

from typing import NamedTuple

from publish.domain.errors import Conflict, NotApplied, OutcomeUnknown, StoreFault, Unreachable

# Bounds of the wait after the first, second and third conflict, in seconds (S4).
CONFLICT_WAITS = ((0.05, 0.1), (0.1, 0.2), (0.2, 0.4))
FIRST_WAIT = 0.2
MAX_WAIT = 10.0


class RetryLimits(NamedTuple):
    """How long one request may be tried, in seconds."""

    total: float
    unreachable: float


class Attempts(NamedTuple):
    """What one request has met so far."""

    conflicts: int = 0
    failures: int = 0
    unreachable_since: float | None = None

    def record(self, fault: StoreFault, sent: float) -> Attempts:
        """This and one more fault, of a request that was sent at that moment."""
        if isinstance(fault, Conflict):
            return self._replace(conflicts=self.conflicts + 1, unreachable_since=None)
        if not isinstance(fault, Unreachable):
            return self._replace(failures=self.failures + 1, unreachable_since=None)
        since = sent if self.unreachable_since is None else self.unreachable_since
        return self._replace(failures=self.failures + 1, unreachable_since=since)


def next_wait(fault: StoreFault, tries: Attempts, now: float, patience: RetryLimits) -> tuple[float, float] | None:
    """The bounds, in seconds, of the wait before the next send; None: `fault` is the answer.

    `tries` counts `fault` itself. The waits double, and chance spreads each over its upper half.
    """
    if isinstance(fault, Conflict):
        return CONFLICT_WAITS[tries.conflicts - 1] if tries.conflicts <= len(CONFLICT_WAITS) else None
    if not isinstance(fault, NotApplied | OutcomeUnknown):
        return None
    if tries.unreachable_since is not None and now - tries.unreachable_since >= patience.unreachable:
        return None
    # 2**16 is past MAX_WAIT already; the cap keeps the number a float's.
    high = min(MAX_WAIT, FIRST_WAIT * 2 ** min(tries.failures - 1, 16))
    return high / 2, high
