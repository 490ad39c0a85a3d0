"""What every test run says of itself, and which tests it has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.proxies import PROGRAM as TINYPROXY
from tests.support.server_mode import describe

# The fixtures that are real servers, one way or another; parameters name them too.
SERVERS = {"seaweedfs", "vault"}
PROXIES = {"proxy", "tinyproxy"}

# How long an example takes is the machine's affair, not the program's.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Debian has it, PyPI does not: the one thing that `make test` cannot bring along. CI has no excuse.
without_proxy = not Path(TINYPROXY).exists() and not os.environ.get("CI")


def pytest_report_header() -> list[str]:
    proxy = (
        "none, so what needs one is left out (Debian: apt-get install tinyproxy-bin)" if without_proxy else TINYPROXY
    )
    return [f"servers: {describe()}", f"proxy: {proxy}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what needs a real server or a real proxy."""
    for item in items:
        needed = needs(item)
        if needed & SERVERS:
            item.add_marker(pytest.mark.servers)
        if needed & PROXIES:
            item.add_marker(pytest.mark.tinyproxy)
    if without_proxy:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("tinyproxy")])
        items[:] = [item for item in items if not item.get_closest_marker("tinyproxy")]


def needs(item: pytest.Item) -> set[str]:
    """The names of fixtures that a test asks for, by itself or by its parameters."""
    assert isinstance(item, pytest.Function)
    named = set(item.fixturenames)
    if hasattr(item, "callspec"):
        named |= {str(value).removeprefix("s3-") for value in item.callspec.params.values()}
    return named
