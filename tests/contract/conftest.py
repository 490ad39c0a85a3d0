"""The grounds that every test of the contract runs on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from publish.domain.ports import Store
from tests.support.grounds import GROUNDS, Ground


@pytest.fixture(params=list(GROUNDS))
def make_ground(request: pytest.FixtureRequest) -> Callable[[], Ground]:
    """Each call gives a fresh root."""
    make = GROUNDS[request.param]
    return lambda: make(request)


@pytest.fixture
def ground(make_ground: Callable[[], Ground]) -> Ground:
    return make_ground()


@pytest.fixture
def store(ground: Ground) -> Store:
    return ground.store()
