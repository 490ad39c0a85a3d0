"""The system's clock and random numbers."""

from __future__ import annotations

import os
import time


class SystemClock:
    """Monotonic time: a step of the wall clock neither shortens nor lengthens a wait."""

    def now(self) -> float:
        """Seconds since an arbitrary moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Returns after `seconds`."""
        time.sleep(seconds)


class SystemRandom:
    """The kernel's generator, so no two processes share a sequence."""

    def uniform(self, low: float, high: float) -> float:
        """A number from `low` (inclusive) to `high` (exclusive)."""
        return low + (high - low) * int.from_bytes(os.urandom(6), "big") / 2**48

    def token(self) -> str:
        """128 random bits in hexadecimal."""
        return os.urandom(16).hex()
