"""What SAVE may name is the same for every verb that takes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.program import call

WITH_SAVE: dict[str, Callable[[str], tuple[str, ...]]] = {
    "publish": lambda save: ("publish", "-epoch", "1", save, "1"),
    "retract": lambda save: ("retract", save),
    "retract -delete": lambda save: ("retract", "-delete", save),
    "verify": lambda save: ("verify", save),
    "begin": lambda save: ("begin", "-attempt", "a", "-from", save),
    "run": lambda save: ("run", "-framework", "hf", "-attempt", "a", "-from", save, "true"),
}
NO_SAVES = {
    "": "SAVE must be inside the root, not the root itself: ",
    "pub": "pub/ is reserved for publish and holds no saves: ",
    "pub/x": "pub/ is reserved for publish and holds no saves: ",
    ".publish/prune": ".publish/ is reserved for publish and holds no saves: ",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/pub").mkdir(parents=True)
    return tmp_path / "root"


@pytest.mark.parametrize("verb", WITH_SAVE)
@pytest.mark.parametrize("place", NO_SAVES)
def test_the_root_and_what_is_reserved_in_it_is_not_a_save(root: Path, verb: str, place: str) -> None:
    """publish.1"""
    save = str(root / place)
    name, *rest = WITH_SAVE[verb](save)
    result = call(name, "-checkpoint", root, *rest)
    assert (result.status, result.out) == (1, b"")
    assert result.notes[-1] == NO_SAVES[place] + save
    assert sorted(root.rglob("*")) == [root / "pub"]


@pytest.mark.parametrize("verb", [verb for verb in WITH_SAVE if verb != "verify"])
def test_an_error_about_a_save_ends_with_it_as_log_prints_it(root: Path, verb: str) -> None:
    """cli.5: so that it can be copied into the next command."""
    name, *rest = WITH_SAVE[verb](str(root / "exec/a/step-1"))
    result = call(name, "-checkpoint", root, *rest)
    assert (result.status, result.out) == (1, b"")
    assert result.notes[-1].endswith(f": {root}/exec/a/step-1")


@pytest.mark.parametrize("verb", WITH_SAVE)
def test_a_save_outside_the_root_is_refused(root: Path, verb: str) -> None:
    """publish.3"""
    name, *rest = WITH_SAVE[verb](str(root.parent / "elsewhere"))
    result = call(name, "-checkpoint", root, *rest)
    assert (result.status, result.out) == (1, b"")
    assert result.notes[-1] == f"not under the root {root}: {root.parent}/elsewhere"
