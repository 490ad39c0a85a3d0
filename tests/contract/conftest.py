"""The stores that every test of the contract runs on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from publish.domain.ports import Store
from tests.support.stores import FRESH_ROOTS, FreshRoot


@pytest.fixture(params=list(FRESH_ROOTS))
def make_root(request: pytest.FixtureRequest) -> Callable[[], FreshRoot]:
    """Each call returns a fresh root."""
    make = FRESH_ROOTS[request.param]
    return lambda: make(request)


@pytest.fixture
def fresh_root(make_root: Callable[[], FreshRoot]) -> FreshRoot:
    return make_root()


@pytest.fixture
def store(fresh_root: FreshRoot) -> Store:
    return fresh_root.store()
