"""The system's clock and chance."""

from __future__ import annotations

import os
import time


class SystemClock:
    """Monotonic seconds, so that no step of the wall clock cuts a wait short or draws it out."""

    def now(self) -> float:
        """Seconds since the machine started."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Returns when `seconds` have passed."""
        time.sleep(seconds)


class SystemRandom:
    """The kernel's generator: no two processes share a sequence."""

    def uniform(self, low: float, high: float) -> float:
        """A number from `low` up to `high`, evenly spread."""
        return low + (high - low) * int.from_bytes(os.urandom(6), "big") / 2**48

    def token(self) -> str:
        """128 random bits in hexadecimal."""
        return os.urandom(16).hex()
