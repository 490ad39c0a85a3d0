"""What every test run says of itself."""

from __future__ import annotations

import pytest

from tests.support.ways import describe

# The fixtures that are real servers, one way or another; parameters name them too.
SERVERS = {"seaweedfs", "openbao"}


def pytest_report_header() -> str:
    return f"servers: {describe()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs a real server, so that `make test-containers` runs that and no more."""
    for item in items:
        assert isinstance(item, pytest.Function)
        named = set(item.fixturenames)
        if hasattr(item, "callspec"):
            named |= {str(value).removeprefix("s3-") for value in item.callspec.params.values()}
        if named & SERVERS:
            item.add_marker(pytest.mark.servers)
