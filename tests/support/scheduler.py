"""Processes that a test advances one store call at a time, so that it can draw any interleaving.

Each actor runs a use case on its own thread, which stops before every call to the store until
the test continues it. At most one thread runs at any time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from publish.domain.ports import Store
from tests.support.faults import Crash


class Actor:
    """A process that can be advanced by one store call, and killed between any two."""

    def __init__(self, store: Store, work: Callable[[Store], None]) -> None:
        self.ended = False
        self.failure: BaseException | None = None
        self._killed = False
        self._turn = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(work, _Stepped(store, self.pause)), daemon=True)
        self._thread.start()
        self._stopped.acquire()

    def step(self) -> None:
        """Lets the next call happen."""
        self._turn.release()
        self._stopped.acquire()

    def kill(self) -> None:
        """Neither the next call nor any later one happens."""
        self._killed = True
        self.step()

    def finish(self) -> None:
        while not self.ended:
            self.step()

    def pause(self) -> None:
        self._stopped.release()
        self._turn.acquire()
        if self._killed:
            raise Crash

    def _run(self, work: Callable[[Store], None], store: Store) -> None:
        try:
            work(store)
        except Crash:
            pass
        except BaseException as failure:  # noqa: BLE001  (handed to the test)
            self.failure = failure
        self.ended = True
        self._stopped.release()


class _Stepped:
    """A store that pauses before every call."""

    def __init__(self, store: Store, pause: Callable[[], None]) -> None:
        self._store = store
        self._pause = pause

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (any of the port's methods)
        return partial(self._call, getattr(self._store, name))

    def _call(self, method: Callable[..., object], *arguments: object) -> object:
        self._pause()
        return method(*arguments)
