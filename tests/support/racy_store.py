"""A store whose check and write of a conditional put are two steps."""

from __future__ import annotations

import threading
import time

from tests.support.fault_proxy import Exchange
from tests.support.wire_faults import says

# Seconds.
WINDOW = 0.001

_taken = says(412, "PreconditionFailed")


class RacyPut:
    """A fault that lets each put win whose check falls into the window between another's check and write."""

    def __init__(self, window: float = WINDOW) -> None:
        self._window = window
        self._written: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, exchange: Exchange) -> None:
        asked = exchange.asked
        with self._lock:
            taken = asked.target in self._written
        if taken:
            _taken(exchange)
            return
        time.sleep(self._window)
        with self._lock:
            self._written.add(asked.target)
        headers = [(name, value) for name, value in asked.headers if name.lower() != "if-none-match"]
        exchange.answer(exchange.forward(exchange.resign(asked._replace(headers=headers))))
