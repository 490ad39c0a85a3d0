"""The strict filesystem, mounted once; and the seed of the cuts that are drawn."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.power import Laboratory
from tests.support.power_judge import Judge
from tests.support.preloaded_program import Preloaded
from tests.support.strict_fs import StrictMount

SEED = int(os.environ.get("PUBLISH_TEST_SEED") or random.SystemRandom().randrange(1 << 32))


def pytest_report_header() -> str:
    return f"power cuts: PUBLISH_TEST_SEED={SEED}"


@pytest.fixture(scope="session")
def strict_mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StrictMount]:
    mount = StrictMount(tmp_path_factory.mktemp("strict"))
    yield mount
    mount.close()


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    program = Preloaded()
    yield program
    program.close()


@pytest.fixture(scope="session")
def judge(preloaded: Preloaded) -> Iterator[Judge]:
    # A filesystem in memory, since thousands of small trees are made.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Judge(preloaded, Path(folder, "root"))


@pytest.fixture
def laboratory(strict_mount: StrictMount, judge: Judge) -> Iterator[Laboratory]:
    laboratory = Laboratory(strict_mount, judge, SEED)
    yield laboratory
    sys.stdout.write(f"{laboratory.states} states, seed {SEED}\n")
