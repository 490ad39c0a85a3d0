"""The checker of the chaos sees what it is there for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.domain.entry import Entry
from tests.chaos.arena import Arena
from tests.chaos.checker import check_always, check_at_the_end
from tests.chaos.places import Directory
from tests.chaos.trainer import save


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena("directory", Directory(str(tmp_path)), ("-checkpoint", str(tmp_path)), str(tmp_path), 1)


def publish(arena: Arena, step: int, *, whole: bool = True) -> Entry:
    path = f"exec/a/checkpoint-{step}"
    if whole:
        save(arena.place, "exec/a", step)
    entry = Entry.of(1, step, path.encode())
    arena.place.write(f"pub/{entry.name.decode()}", b"")
    arena.published.append((f"published {entry.name.decode()} (epoch 1, step {step}, {arena.flags[1]}/{path})", step))
    return entry


def watched(arena: Arena, change: Callable[[], object]) -> list[str]:
    """The violations that a checker finds which was there before and after a change."""
    checker = threading.Thread(target=check_always, args=(arena,))
    checker.start()
    _until(lambda: arena.counts["checks"] >= 2)
    change()
    checks = arena.counts["checks"]
    _until(lambda: arena.counts["checks"] >= checks + 3 or bool(arena.violations))
    arena.over.set()
    checker.join()
    check_at_the_end(arena)
    return arena.violations


def _until(fact: Callable[[], bool]) -> None:
    while not fact():
        threading.Event().wait(0.01)


def test_a_right_root_has_no_violation(arena: Arena) -> None:
    publish(arena, 1)
    assert watched(arena, lambda: publish(arena, 2)) == []


def test_an_entry_for_a_save_that_is_not_whole_is_seen(arena: Arena) -> None:
    publish(arena, 1)
    (violation, *_) = watched(arena, lambda: publish(arena, 2, whole=False))
    assert "not whole" in violation


def test_a_log_that_goes_back_is_seen(arena: Arena, tmp_path: Path) -> None:
    publish(arena, 1)
    latest = publish(arena, 2)
    (violation, *_) = watched(arena, (tmp_path / "pub" / latest.name.decode()).unlink)
    assert "went back" in violation


def test_an_entry_that_its_publisher_takes_back_unsaid_is_right(arena: Arena, tmp_path: Path) -> None:
    """race.1"""
    publish(arena, 1)
    latest = publish(arena, 2)
    arena.published.pop()
    assert watched(arena, (tmp_path / "pub" / latest.name.decode()).unlink) == []
    assert arena.counts["latest taken back"] == 1


def test_a_save_that_no_prune_removes_is_seen(arena: Arena, tmp_path: Path) -> None:
    publish(arena, 2)
    lost = publish(arena, 1)
    (tmp_path / "pub" / lost.name.decode()).unlink()
    check_at_the_end(arena)
    assert any("not removed: exec/a/checkpoint-1" in violation for violation in arena.violations)
