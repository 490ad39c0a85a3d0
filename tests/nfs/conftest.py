"""Two mounts of one export for each version of NFS: those of the emulated machine (tests/nfs/run.py), or your own.

PUBLISH_TEST_NFS names them, `name=/mount/a:/mount/b,…`. PUBLISH_TEST_NFS_EXPORT is the exported folder where the
server is this machine.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.nfs_mounts import Mounts, Node, Server, pairs

MOUNTS = pairs(os.environ.get("PUBLISH_TEST_NFS", "none=/nonexistent:/nonexistent"))


@pytest.fixture(params=MOUNTS)
def mounts(request: pytest.FixtureRequest) -> Mounts:
    return MOUNTS[request.param]


@pytest.fixture
def nodes(mounts: Mounts) -> tuple[Node, Node]:
    """One fresh root, as two nodes see it."""
    return mounts.nodes()


@pytest.fixture
def server() -> Server:
    return Server(Path(os.environ["PUBLISH_TEST_NFS_EXPORT"]))


@pytest.fixture(params=["3", "4.2"])
def version(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value
