"""Variants of a test, of which `make test` runs some and `make test-all` runs all."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest


def variants(values: Mapping[str, object], *before: str, exhaustive: Collection[str]) -> list[object]:
    """A parameter for each value, by its id, after those that come `before`.

    `exhaustive`: the ids of those for `make test-all` only.
    """
    return [
        pytest.param(
            *before, value, id=" ".join((*before, name)), marks=[pytest.mark.exhaustive] if name in exhaustive else []
        )
        for name, value in values.items()
    ]


SERVERS = variants({"moto": "moto", "seaweedfs": "seaweedfs"}, exhaustive={"seaweedfs"})
"""S3 servers, for what races: SeaweedFS lets racing writers wait a second for the lock of a name."""
