"""The strict model keeps what was synced, and any mixture of the rest; the mounted one records what a program does."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.strict_cuts import cuts
from tests.support.strict_fs import StrictMount
from tests.support.strict_model import ROOT, Model, Op, Tree


def left_by_cuts(model: Model) -> list[Tree]:
    return [tree for _, tree in cuts(model, ROOT, random.Random(1), 20)]


def test_what_was_synced_is_kept_by_every_cut() -> None:
    tree: Tree = {b"a": None, b"a/f": b"content", b"a/l": "target"}
    assert left_by_cuts(Model.of(tree)) == [tree]


def test_of_what_was_not_synced_a_cut_keeps_any_part() -> None:
    model = Model()
    model.add(b"f", b"content")
    model.add(b"g", b"")
    left = left_by_cuts(model)
    for tree in ({}, {b"f": b""}, {b"f": b"content"}, {b"g": b""}, {b"f": b"", b"g": b""}):
        assert tree in left


def test_a_synced_file_is_lost_with_its_name() -> None:
    model = Model()
    model.add(b"f", b"content")
    model.apply(Op("sync", model.find(b"f")))
    left = left_by_cuts(model)
    assert {} in left
    assert {b"f": b"content"} in left
    assert {b"f": b""} not in left


def test_a_synced_name_is_lost_with_the_folder_above() -> None:
    model = Model()
    model.add(b"a/f", b"")
    model.apply(Op("sync", model.find(b"a")))
    left = left_by_cuts(model)
    assert {} in left
    assert {b"a": None} not in left


def test_what_was_removed_is_back_unless_its_folder_was_synced() -> None:
    model = Model.of({b"a/f": b"content", b"a/g": b""})
    folder = model.find(b"a")
    model.apply(Op("unlink", folder, b"f"))
    assert {b"a": None, b"a/f": b"content", b"a/g": b""} in left_by_cuts(model)
    model.apply(Op("sync", folder))
    assert left_by_cuts(model) == [{b"a": None, b"a/g": b""}]


def test_a_renamed_file_has_both_names_one_or_none() -> None:
    model = Model.of({b"f": b"content"})
    model.apply(Op("link", ROOT, b"g", other=model.find(b"f")))
    model.apply(Op("unlink", ROOT, b"f"))
    left = left_by_cuts(model)
    for tree in ({b"f": b"content"}, {b"g": b"content"}, {b"f": b"content", b"g": b"content"}, {}):
        assert tree in left


def folder_in_a_folder(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    with (root / "a" / "b" / "f").open("wb") as file:
        file.write(b"one")
        file.flush()
        os.fsync(file.fileno())
    (root / "a" / "b" / "f").rename(root / "a" / "g")
    (root / "a" / "b").rmdir()
    (root / "l").symlink_to("a")
    os.link(root / "a" / "g", root / "h")


def overwritten(root: Path) -> None:
    (root / "f").write_bytes(b"long ago")
    (root / "f").write_bytes(b"now")
    with (root / "f").open("r+b") as file:
        file.seek(5)
        file.write(b"x")


@pytest.mark.power
@pytest.mark.parametrize("act", [folder_in_a_folder, overwritten])
def test_what_was_recorded_gives_what_is_there(
    act: Callable[[Path], None], strict_mount: StrictMount, tmp_path: Path
) -> None:
    strict_mount.load(Model())
    act(strict_mount.path)
    act(tmp_path)
    model = Model()
    for op in strict_mount.taken():
        model.apply(op)
    seen = model.tree(lambda _: -1)
    assert set(seen) == {os.fsencode(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    files = {path: content for path, content in seen.items() if isinstance(content, bytes)}
    assert files == {path: (tmp_path / os.fsdecode(path)).read_bytes() for path in files}


@pytest.mark.power
def test_a_taken_name_is_refused(strict_mount: StrictMount) -> None:
    strict_mount.load(Model.of({b"f": b"", b"a/g": b""}))
    with pytest.raises(FileExistsError):
        (strict_mount.path / "f").open("x")
    with pytest.raises(FileExistsError):
        (strict_mount.path / "a").mkdir()
    with pytest.raises(OSError, match="not empty"):
        (strict_mount.path / "a").rmdir()
    assert strict_mount.taken() == []
