"""`pub/` and `.publish/`: no link leads to them, and what is removed is what was listed (layout.5, layout.9)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import ConfigError, FormatError, PublishError
from publish.domain.ports import Namespace
from tests.support.directories import fill, open_store, tree
from tests.support.ownership import give_to

ENTRY = Entry.of(1, 2, b"run/2")
NAME = ENTRY.name.decode()
PRUNE = ".publish/prune"


@pytest.mark.parametrize("make", [lambda pub: pub.symlink_to("nowhere"), lambda pub: pub.touch()])
def test_a_pub_that_is_not_a_directory_is_an_error_and_never_an_empty_log(
    root: Path, make: Callable[[Path], None]
) -> None:
    """layout.5."""
    make(root / "pub")
    with pytest.raises(FormatError, match="dangling link, or not a directory"):
        open_store(root).list_entries(Namespace.PUB, None)
    with pytest.raises(PublishError, match=r"/root/pub$"):
        open_store(root).create(Namespace.PUB, ENTRY.name)
    assert tree(root) == ["pub"]


def test_a_pub_that_is_a_link_is_followed_for_reading(root: Path) -> None:
    """layout.5."""
    fill(root, f"elsewhere/{NAME}")
    (root / "pub").symlink_to("elsewhere")
    assert open_store(root).list_entries(Namespace.PUB, None).names == [ENTRY.name]


def test_nothing_is_written_or_removed_through_a_linked_pub(root: Path) -> None:
    """layout.5: it may be another root's log."""
    fill(root, f"elsewhere/{NAME}")
    (root / "pub").symlink_to("elsewhere")
    store = open_store(root)
    for call in (
        lambda: store.create(Namespace.PUB, Entry.of(1, 3, b"run/3").name),
        lambda: store.create(Namespace.PRUNE, ENTRY.name),
        lambda: store.remove_entries(Namespace.PUB, [ENTRY.name]),
        lambda: store.remove_entries(Namespace.PRUNE, [ENTRY.name]),
        lambda: store.sync_entries(Namespace.PUB, [ENTRY.name]),
    ):
        with pytest.raises(ConfigError, match=r"symbolic link, and publish writes .* nothing through one: .*/pub$"):
            call()
    assert tree(root) == ["elsewhere", f"elsewhere/{NAME}", "pub"]


def test_a_pub_that_another_user_linked_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """layout.5: who may make names in the root could lead a resolve to a log of their own."""
    fill(root, f"elsewhere/{NAME}")
    (root / "pub").symlink_to("elsewhere")
    give_to(monkeypatch, root / "pub", 12345)
    with pytest.raises(ConfigError, match=r"another user \(uid 12345\)"):
        open_store(root).list_entries(Namespace.PUB, None)


def test_a_pub_swapped_for_a_link_is_not_written_to(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """layout.5: the swap happens between the look at `pub` and its opening."""
    fill(root, f"pub/{NAME}")
    fill(root.parent, f"other/{NAME}")
    store = open_store(root)
    store.list_entries(Namespace.PUB, None)
    real = os.open

    def swap(path: bytes, flags: int, *more: int, **options: int) -> int:
        if path == b"pub" and not (root / "pub").is_symlink():
            (root / "pub").rename(root / "aside")
            (root / "pub").symlink_to("../other")
        return real(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(ConfigError, match="symbolic link"):
        store.remove_entries(Namespace.PUB, [ENTRY.name])
    assert (root.parent / "other" / NAME).exists()
    assert (root / "aside" / NAME).exists()


def test_a_name_is_removed_only_from_the_folder_that_listed_it(root: Path) -> None:
    """prune.7: a folder moved into the place of `pub/` meanwhile keeps its entries."""
    fill(root, f"pub/{NAME}")
    store = open_store(root)
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]
    fill(root, f"other/{NAME}")
    (root / "pub").rename(root / "aside")
    (root / "other").rename(root / "pub")
    with pytest.raises(ConfigError, match=r"replaced by another while it was in use: .*/pub"):
        store.remove_entries(Namespace.PUB, [ENTRY.name])
    assert (root / "pub" / NAME).exists()


def test_names_and_times_are_of_one_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """root.4, log.1: a folder moved into the place of `pub/` between the two looks."""
    fill(root, f"pub/{NAME}")
    (root / "other").mkdir()
    store = open_store(root)
    scandir = os.scandir

    def swap(folder: int) -> object:
        scan = scandir(folder)
        (root / "pub").rename(root / "aside")
        (root / "other").rename(root / "pub")
        return scan

    monkeypatch.setattr(os, "scandir", swap)
    assert [one.name for one in store.list_dated(Namespace.PUB, None).names] == [ENTRY.name]


@pytest.mark.parametrize("link", [".publish", PRUNE])
def test_the_records_are_never_reached_through_a_link(root: Path, link: str) -> None:
    """layout.9: a record in another root's folder is not this root's, nor is it removed."""
    other = root.parent / "other"
    fill(other, f"pub/{NAME}", f"{PRUNE}/{NAME}")
    before = tree(other)
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to({".publish": other / ".publish", PRUNE: other / "pub"}[link])
    store = open_store(root)
    for call in (
        lambda: store.list_entries(Namespace.PRUNE, None),
        lambda: store.read_record(Namespace.PRUNE, ENTRY.name),
        lambda: store.create(Namespace.PRUNE, Entry.of(1, 3, b"x").name),
        lambda: store.create(Namespace.PRUNE, Entry.of(1, 3, b"x").name, b"content"),
        lambda: store.remove_entries(Namespace.PRUNE, [ENTRY.name]),
    ):
        with pytest.raises(ConfigError, match=f"symbolic link, .*/{link}$"):
            call()
    assert tree(other) == before


def test_the_folder_of_temporary_files_is_not_reached_through_a_link(root: Path) -> None:
    """layout.9, begin.4."""
    (root.parent / "other").mkdir()
    (root / ".publish").mkdir()
    (root / ".publish/tmp").symlink_to(root.parent / "other")
    with pytest.raises(ConfigError, match="symbolic link"):
        open_store(root).create(Namespace.PRUNE, ENTRY.name, b"content")
    assert tree(root.parent / "other") == []
