"""Saves are removed by descriptors: no link leads outside, and what stays is named."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import PermanentFault, SymlinkInPath
from publish.domain.frameworks import MARKERS
from publish.domain.ports import Namespace
from tests.support.directories import failing, fill, open_store, recorded, tree


class TestLinks:
    """prune.4: no link leads a removal out of the root."""

    @pytest.mark.parametrize(("link", "path"), [("exec", "exec/a/1"), ("exec/a", "exec/a/1"), ("exec/a/1", "exec/a/1")])
    def test_a_link_on_the_way_leaves_the_save(self, root: Path, link: str, path: str) -> None:
        outside = root.parent / "outside"
        fill(outside, "1/x", "a/1/x", "x", "trainer_state.json", "1/trainer_state.json")
        before = tree(outside)
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(outside)
        with pytest.raises(SymlinkInPath) as caught:
            open_store(root).remove_tree(path.encode(), MARKERS)
        assert caught.value.link == link.encode()
        assert tree(outside) == before
        assert (root / link).is_symlink()

    def test_links_inside_a_save_are_removed_as_links(self, root: Path) -> None:
        outside = root.parent / "outside"
        fill(outside, "kept/x")
        fill(root, "run/1/a")
        (root / "run/1/folder").symlink_to(outside)
        (root / "run/1/file").symlink_to(outside / "kept/x")
        (root / "run/1/trainer_state.json").symlink_to(outside / "kept/x")
        open_store(root).remove_tree(b"run/1", MARKERS)
        assert tree(outside) == ["kept", "kept/x"]
        assert tree(root) == ["run"]

    @pytest.mark.parametrize("place", ["run", "run/1", "run/1/deep"])
    def test_a_link_swapped_in_at_the_last_moment_is_not_followed(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        """The swap happens between the look at a folder and its opening."""
        outside = root.parent / "outside"
        fill(outside, "1/x", "deep/x", "x", "trainer_state.json", "1/trainer_state.json")
        fill(root, "run/1/deep/x", "run/1/trainer_state.json")
        before = tree(outside)
        real = os.open
        swaps = [os.fsencode(place.rsplit("/", maxsplit=1)[-1])]

        def swap(name: bytes, *arguments: int, **options: int) -> int:
            if name in swaps:
                swaps.clear()
                (root / place).rename(root / "aside")
                (root / place).symlink_to(outside)
            return real(name, *arguments, **options)

        monkeypatch.setattr(os, "open", swap)
        if place == "run/1/deep":
            assert open_store(root).remove_tree(b"run/1", MARKERS).found
            assert tree(root) == ["aside", "aside/x", "run"]
        else:
            with pytest.raises(SymlinkInPath):
                open_store(root).remove_tree(b"run/1", MARKERS)
            assert (root / place).is_symlink()
        assert swaps == []
        assert tree(outside) == before

    def test_a_link_swapped_in_while_it_runs_never_leads_outside(self, root: Path) -> None:
        """Another process swaps folders for links as fast as it can while saves are removed."""
        outside = root.parent / "outside"
        fill(
            outside,
            *(f"{folder}/{file}" for folder in ("deep", "deep/er", ".") for file in ("a", "trainer_state.json")),
        )
        before = tree(outside)
        swapper = subprocess.Popen([sys.executable, "-c", _SWAPPER, str(root), str(outside)])
        try:
            store = open_store(root)
            outcomes: set[bool | type[Exception]] = set()
            for number in range(400):
                fill(
                    root,
                    *(f"made/{number}/run/1/{path}" for path in ("a", "deep/b", "deep/er/c", "trainer_state.json")),
                )
                os.rename(root / "made" / str(number), root / "current")
                for _ in range(3):
                    try:
                        outcomes.add(store.remove_tree(b"current/run/1", MARKERS).found)
                    except (SymlinkInPath, PermanentFault) as fault:
                        outcomes.add(type(fault))
                os.rename(root / "current", root / f"old-{number}")
                assert tree(outside) == before
        finally:
            swapper.kill()
            swapper.wait()
        assert SymlinkInPath in outcomes, "no swap was met: the test shows nothing"
        assert True in outcomes


_SWAPPER = """
import os, sys
root, outside = sys.argv[1:]
os.chdir(root)
while True:
    for place in ("current/run/1/deep", "current/run/1", "current/run"):
        target = outside + "/deep" * place.endswith("deep")
        try:
            os.rename(place, place + ".aside")
            os.symlink(target, place)
            os.unlink(place)
            os.rename(place + ".aside", place)
        except OSError:
            pass
"""


class TestWhatCannotBeRemoved:
    """prune.5: it is reported, the rest is done."""

    def refusing(self, monkeypatch: pytest.MonkeyPatch, act: str, refused: bytes, code: int) -> None:
        real = getattr(os, act)

        def call(name: bytes, *arguments: object, **options: object) -> object:
            if name == refused:
                raise OSError(code, os.strerror(code))
            return real(name, *arguments, **options)

        monkeypatch.setattr(os, act, call)

    def test_each_folder_that_stays_says_why(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also an unseen file's, beside another fault."""
        fill(root, "run/1/a/stuck", "run/1/b/x")
        real_unlink, real_rmdir = os.unlink, os.rmdir

        def unlink(name: bytes, *, dir_fd: int) -> None:
            if name == b"stuck":
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
            real_unlink(name, dir_fd=dir_fd)

        def rmdir(name: bytes, *, dir_fd: int) -> None:
            if name == b"b":
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
            real_rmdir(name, dir_fd=dir_fd)

        monkeypatch.setattr(os, "unlink", unlink)
        monkeypatch.setattr(os, "rmdir", rmdir)
        with pytest.raises(PermanentFault, match=r"\(and 1 more\)$"):
            open_store(root).remove_tree(b"run/1", MARKERS)

    @pytest.mark.parametrize(
        ("act", "refused", "code", "left"),
        [
            ("unlink", b"stuck", errno.EPERM, ["run", "run/1", "run/1/deep", "run/1/deep/stuck"]),
            ("rmdir", b"deep", errno.ENOTEMPTY, ["run", "run/1", "run/1/deep"]),  # a reader's .nfsXXXX file
            ("rmdir", b"1", errno.EBUSY, ["run", "run/1"]),
            ("open", b"deep", errno.EACCES, ["run", "run/1", "run/1/deep", "run/1/deep/stuck"]),
        ],
    )
    def test_the_rest_of_a_save_goes(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, act: str, refused: bytes, code: int, left: list[str]
    ) -> None:
        fill(root, "run/1/a", "run/1/deep/stuck", "run/1/z/y", "run/1/.metadata")
        store = open_store(root)
        with monkeypatch.context() as patch:
            self.refusing(patch, act, refused, code)
            with pytest.raises(PermanentFault, match=f"^{os.strerror(code)}: run/1"):
                store.remove_tree(b"run/1", MARKERS)
        assert tree(root) == left
        assert store.remove_tree(b"run/1", MARKERS).found
        assert tree(root) == ["run"]

    def test_nothing_goes_while_the_marker_stays(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """prune.6: else a half-removed save is taken for a whole one."""
        fill(root, "run/1/a", "run/1/trainer_state.json")
        self.refusing(monkeypatch, "unlink", b"trainer_state.json", errno.EACCES)
        with pytest.raises(PermanentFault, match=r"^Permission denied, so nothing .*: run/1/trainer_state.json$"):
            open_store(root).remove_tree(b"run/1", MARKERS)
        assert tree(root) == ["run", "run/1", "run/1/a", "run/1/trainer_state.json"]

    def test_an_entry_that_stays_is_told_from_those_that_go(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store = open_store(root)
        names = [Entry.of(1, step, b"a").name for step in range(3)]
        for name in names:
            store.create(Namespace.PUB, name)
        self.refusing(monkeypatch, "unlink", names[1], errno.EPERM)
        faults = store.remove_entries(Namespace.PUB, names)
        assert [(name, str(fault)) for name, fault in faults.items()] == [(names[1], "Operation not permitted")]
        assert store.list_entries(Namespace.PUB, None).names == [names[1]]

    def test_a_tree_that_is_too_deep_is_reported(self, root: Path) -> None:
        store = open_store(root)
        directory = os.open(root, os.O_RDONLY)
        for _ in range(450):
            os.mkdir("d", dir_fd=directory)
            below = os.open("d", os.O_RDONLY, dir_fd=directory)
            os.close(directory)
            directory = below
        os.close(directory)
        with pytest.raises(PermanentFault, match="nested deeper than 400 folders"):
            store.remove_tree(b"d", MARKERS)


def test_what_another_prune_removes_meanwhile_is_gone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nfs.4: NFS answers ESTALE to every call below a folder that another node removed."""
    store = open_store(root)
    for call, name in (("unlink", b"x"), ("rmdir", b"er"), ("rmdir", b"1"), ("open", b"deep"), ("open", b"1")):
        fill(root, "run/1/deep/er/x", "run/1/a", "run/1/trainer_state.json")
        with monkeypatch.context() as patch:
            failing(patch, call, errno.ESTALE, _after_removing(root / "run/1", name))
            store.remove_tree(b"run/1", MARKERS)
        assert tree(root) == ["run"]
    fill(root, "run/1/deep/er/x")
    with monkeypatch.context() as patch:
        failing(patch, "scandir", errno.ESTALE, _after_removing(root / "run/1", None))
        assert store.remove_tree(b"run/1", MARKERS).found
    assert tree(root) == ["run"]


def _after_removing(save: Path, name: bytes | None) -> Callable[..., bool]:
    """Says of the first call about `name`, or of any, that it comes after another prune's removal."""

    def applies(path: bytes, *_: int, **__: int) -> bool:
        if name in (path, None):
            subprocess.run(["rm", "-rf", save], check=True)
            return True
        return False

    return applies


@pytest.mark.parametrize(("path", "synced"), [("exec/a/1", "a"), ("exec/b/1", "exec"), ("other/1", ".")])
def test_the_removal_of_a_save_that_is_gone_is_made_durable(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, synced: str
) -> None:
    """data.6: an earlier prune may only have done it; the nearest folder above has lost the name."""
    (root / "exec/a").mkdir(parents=True)
    store = open_store(root)
    with recorded(monkeypatch, "fsync") as calls:
        assert not store.remove_tree(path.encode(), MARKERS).found
    assert [call for call in calls if call.startswith("fsync")] == [f"fsync {synced}"]
    failing(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(PermanentFault, match="Input/output error"):
        store.remove_tree(path.encode(), MARKERS)
