"""What the real torch writes is whole, and broken without its last byte: verify.6."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore
from publish.domain.wholeness import check_save
from tests.support.program import CLEAN

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

JOB = Path(__file__).parent / "jobs" / "whole_saves.py"
SAVES = ["dcp", "dcp-alone", "dcp-file-per-piece", "dcp-threads", "dcp-async", "dcp-one-rank"]
SAVES += ["hf", "hf-shards", "ranks", "files", "old-files"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = os.environ.get("PUBLISH_TEST_TORCH_PYTHON")
    if python is None:
        pytest.fail("PUBLISH_TEST_TORCH_PYTHON names no interpreter that has the frameworks; use make acceptance")
    root = tmp_path_factory.mktemp("job") / "root"
    root.mkdir()
    subprocess.run([python, "-W", "ignore", JOB, root], env=CLEAN, check=True, timeout=240)
    return root


def is_whole(root: Path, save: str) -> bool:
    return check_save(PosixStore(bytes(root)), save.encode(), map).is_whole


def test_every_kind_of_save_was_written(root: Path) -> None:
    assert sorted(path.name for path in root.iterdir()) == sorted(SAVES)


@pytest.mark.parametrize("save", SAVES)
def test_a_save_is_whole(root: Path, save: str) -> None:
    """verify.6"""
    assert check_save(PosixStore(bytes(root)), save.encode(), map).faults == []


@pytest.mark.parametrize("save", [save for save in SAVES if save != "old-files"])
def test_a_save_without_the_last_byte_of_any_of_its_files_is_broken(root: Path, save: str) -> None:
    """verify.6"""
    for file in sorted(path for path in (root / save).rglob("*") if path.is_file()):
        content = file.read_bytes()
        file.write_bytes(content.rstrip()[:-1] if file.suffix == ".json" else content[:-1])
        assert not is_whole(root, save), file
        file.write_bytes(content)
    assert is_whole(root, save)
