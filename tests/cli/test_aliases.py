"""alias.1 and verify.4 with the installed program: links among the saves, and saves that another program removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.program import Result, call


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Steps 100 and 200 are published, and step 200 again through the link `last`, which is the latest."""
    root = tmp_path / "root"
    for step in (100, 200):
        (root / f"run/checkpoint-{step}").mkdir(parents=True)
        (root / f"run/checkpoint-{step}/weights").write_text("w")
        publish(root, f"run/checkpoint-{step}", step)
    (root / "run/last").symlink_to("checkpoint-200")
    publish(root, "run/last", 201)
    return root


def publish(root: Path, save: str, step: int) -> None:
    assert call("publish", "-checkpoint", root, "-epoch", "1", root / save, str(step)).status == 0


def prune(root: Path) -> Result:
    return call("prune", "-checkpoint", root, "-keep", "1")


def saves(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "run").iterdir() if not path.is_symlink())


def test_a_prune_keeps_what_the_link_of_the_latest_entry_leads_to(root: Path) -> None:
    """alias.1: the reported case."""
    result = prune(root)
    assert (result.status, saves(root)) == (0, ["checkpoint-200"])
    assert result.out == b"removed %s\n" % bytes(root / "run/checkpoint-100")


def test_a_link_that_was_swapped_protects_what_it_leads_to_now(root: Path) -> None:
    """alias.1: resolved just before the removal."""
    (root / "run/last").unlink()
    (root / "run/last").symlink_to("checkpoint-100")
    assert prune(root).status == 0
    assert saves(root) == ["checkpoint-100"]
    assert call("resolve", "-checkpoint", root).out == b"%s\n" % bytes(root / "run/last")


def test_a_link_that_leads_nowhere_is_warned_of(root: Path) -> None:
    """alias.1, verify.4: a dangling link does not exist."""
    (root / "run/last").unlink()
    (root / "run/last").symlink_to("checkpoint-300")
    result = prune(root)
    assert result.status == 0
    assert any(str(root / "run/last") in note for note in result.notes), result.notes


def test_a_kept_save_whose_folder_was_removed_is_warned_of(root: Path) -> None:
    """verify.4: the reported case."""
    (root / "run/last").unlink()
    call("retract", "-checkpoint", root, root / "run/last")
    shutil.rmtree(root / "run/checkpoint-200")
    result = prune(root)
    assert result.status == 0
    assert any(str(root / "run/checkpoint-200") in note for note in result.notes), result.notes
