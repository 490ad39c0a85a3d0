"""probe.3: real threads race on a store that checks a name before it creates it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from publish.cli.race import race
from publish.domain.errors import (
    AlreadyExists,
)
from publish.domain.ports import Namespace, Page
from publish.domain.probe import ProbeFailed, probe
from tests.support.fakes import FakeRandom


class Racy:
    """A store that checks a name and creates it `window` seconds later; 0: it does both at once."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._lock = threading.Lock()
        self._objects: dict[bytes, bytes] = {}

    def put(
        self, path: bytes, body: bytes, *, only_if_new: bool, before_send: Callable[[], None] = lambda: None
    ) -> None:
        before_send()
        if not self._window:
            with self._lock:
                self._create(path, body, only_if_new=only_if_new)
            return
        if only_if_new and path in self._objects:
            raise AlreadyExists("taken")
        time.sleep(self._window)  # the fault itself
        self._objects[path] = body

    def _create(self, path: bytes, body: bytes, *, only_if_new: bool) -> None:
        if only_if_new and path in self._objects:
            raise AlreadyExists("taken")
        self._objects[path] = body

    def hold_connection(self, path: bytes, until: Callable[[], None]) -> None:
        assert path in self._objects
        until()

    def read(self, path: bytes, limit: int) -> bytes | None:
        content = self._objects.get(path)
        return None if content is None else content[:limit]

    def delete(self, path: bytes) -> None:
        self._objects.pop(path, None)

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        del namespace, token
        return Page([], None)


def probes(window: float, times: int) -> list[bool]:
    """Runs `times` probes; returns for each whether it passed."""
    passed = []
    for _ in range(times):
        try:
            probe(lambda _step, request: request(), Racy(window), FakeRandom(), race)
        except ProbeFailed:
            passed.append(False)
        else:
            passed.append(True)
    return passed


@pytest.mark.parametrize("times", [5, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_a_second_winner_within_a_millisecond_is_always_found(times: int) -> None:
    """probe.3"""
    assert probes(0.001, times) == [False] * times


@pytest.mark.parametrize("times", [5, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_a_store_that_checks_and_creates_at_once_always_passes(times: int) -> None:
    """probe.3"""
    assert probes(0, times) == [True] * times
