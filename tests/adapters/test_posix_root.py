"""The root is opened once: what happens to its path, or to links below it, leads no call elsewhere."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore, same_directory
from publish.domain.entry import Entry
from publish.domain.errors import ConfigError, NotApplied, PermanentFault, SymlinkInPath
from publish.domain.frameworks import MARKERS
from publish.domain.ports import Namespace
from tests.support.directories import failing, fill, open_store, tree

ENTRY = Entry.of(1, 2, b"run/2")
NAME = ENTRY.name.decode()
PRUNE = ".publish/prune"


def test_a_root_that_does_not_exist_or_is_not_a_directory_is_refused(root: Path) -> None:
    """root.4."""
    (root / "file").touch()
    (root / "dangling").symlink_to("nowhere")
    for name in ("missing", "file", "dangling"):
        with pytest.raises(ConfigError, match=name):
            open_store(root / name)


def test_a_root_may_be_a_link(root: Path) -> None:
    """root.4, prune.4: the root itself may be a link."""
    link = root.parent / "link"
    link.symlink_to(root)
    store = open_store(link)
    store.create(Namespace.PUB, ENTRY.name)
    fill(root, "run/2/x")
    assert store.remove_tree(b"run/2", MARKERS).found
    assert tree(root) == ["pub", f"pub/{NAME}", "run"]


def test_a_root_keeps_one_descriptor_and_gives_it_back(root: Path) -> None:
    """root.4."""
    before = len(os.listdir("/proc/self/fd"))
    store = open_store(root)
    for _ in range(3):
        store.list_entries(Namespace.PUB, None)
        store.save_exists(b"nothing/here")
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del store
    assert len(os.listdir("/proc/self/fd")) == before


CALLS: dict[str, Callable[[PosixStore], object]] = {
    "list entries": lambda store: store.list_entries(Namespace.PUB, None),
    "list records": lambda store: store.list_entries(Namespace.PRUNE, None),
    "read a record": lambda store: store.read_record(Namespace.PRUNE, ENTRY.name),
    "list folders": lambda store: store.list_directories(b"exec/a", None),
    "list the root's folders": lambda store: store.list_directories(b"", None),
    "list files": lambda store: store.list_files_in(b"exec/a", None),
    "list a save": lambda store: store.list_files(b"exec/a", None),
    "look for a save": lambda store: store.save_exists(b"exec/a/1"),
    "look for a file": lambda store: store.exists(b"exec/a/1"),
    "measure a file": lambda store: store.size(b"exec/a/1"),
    "read a file": lambda store: store.read(b"exec/a/1", 10),
    "create": lambda store: store.create(Namespace.PUB, ENTRY.name),
    "create a record": lambda store: store.create(Namespace.PRUNE, ENTRY.name, b"content"),
    "remove entries": lambda store: store.remove_entries(Namespace.PUB, [ENTRY.name]),
    "sync entries": lambda store: store.sync_entries(Namespace.PUB, [ENTRY.name]),
    "sync a save": lambda store: store.sync_save(b"exec/a/1"),
    "resolve links": lambda store: store.real_path(b"exec/a/1"),
    "remove a save": lambda store: store.remove_tree(b"run/2", MARKERS),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_root_that_is_removed_is_never_an_empty_one(root: Path, call: Callable[[PosixStore], object]) -> None:
    """watch.1, resolve.3: also when a file or another directory takes its place."""
    store = open_store(root)
    # There from before: a new directory may get the inode of one that was removed (an NFS server does not hold it).
    other = root.parent / "other"
    other.mkdir()
    root.rmdir()
    with pytest.raises(ConfigError, match="root is not there"):
        call(store)
    root.touch()
    with pytest.raises(ConfigError, match="root is not there"):
        call(store)
    root.unlink()
    other.rename(root)
    with pytest.raises(ConfigError, match="root was replaced"):
        call(store)
    assert tree(root) == []


def test_a_watch_notices_that_another_root_has_taken_the_path(root: Path) -> None:
    """root.4, watch.1: a root that is moved away, a link in its place, a filesystem mounted over it."""
    store = open_store(root)
    fill(root, "exec/a/1/x")
    other = root.parent / "other"
    fill(other, "exec/a/2/x")
    root.rename(root.parent / "aside")
    root.symlink_to(other)
    for call in (store.list_directories, store.list_files_in):
        with pytest.raises(ConfigError, match="root was replaced"):
            call(b"exec/a", None)
    with pytest.raises(ConfigError, match="root was replaced"):
        store.list_entries(Namespace.PUB, None)


def test_where_a_link_leads_is_not_looked_up_in_another_root(root: Path) -> None:
    """root.4, alias.1: what an entry's link protects would look free."""
    fill(root, "run/2/x")
    (root / "run/last").symlink_to("2")
    store = open_store(root)
    assert store.real_path(b"run/last") == b"run/2"
    root.rename(root.parent / "aside")
    with pytest.raises(ConfigError, match="root is not there"):
        store.real_path(b"run/last")
    fill(root.parent, "other/run/last")
    root.symlink_to("other")
    with pytest.raises(ConfigError, match="root was replaced"):
        store.real_path(b"run/last")


def test_a_root_that_is_swapped_half_way_loses_nothing_to_the_other(root: Path) -> None:
    """prune.4: the entries of one root are never held against the saves of another."""
    home = root.parent / "home"
    fill(home, "run/2/trainer_state.json", "run/2/thesis", f"pub/{NAME}", f"{PRUNE}/{NAME}")
    before = tree(home)
    fill(root, "run/2/trainer_state.json", f"pub/{NAME}", f"{PRUNE}/{NAME}")
    store = open_store(root)
    aside = root.parent / "aside"
    root.rename(aside)
    root.symlink_to(home)
    assert store.remove_entries(Namespace.PUB, [ENTRY.name]) == {}
    assert store.remove_tree(b"run/2", MARKERS).found
    assert store.remove_entries(Namespace.PRUNE, [ENTRY.name]) == {}
    store.create(Namespace.PUB, ENTRY.name)
    assert tree(home) == before
    assert tree(aside) == [".publish", PRUNE, "pub", f"pub/{NAME}", "run"]


def test_a_root_that_may_not_be_read_takes_publications(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.5: its folders are there, and only the opening of a folder may be refused."""
    (root / "pub").mkdir()

    def reads_the_root(path: bytes, flags: int, *_: int, **__: int) -> bool:
        return path in (bytes(root), b".") and not flags & os.O_PATH

    failing(monkeypatch, "open", errno.EACCES, reads_the_root)
    store = open_store(root)
    store.create(Namespace.PUB, ENTRY.name)
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]
    with pytest.raises(PermanentFault, match="Permission denied"):
        store.list_entries(Namespace.PRUNE, None)


def test_a_stale_root_is_opened_again_for_the_next_attempt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nfs.6: after the server's restart, or when the root was exported anew."""
    fill(root, f"pub/{NAME}")
    store = open_store(root)
    stale = True
    real = os.dup2

    def is_stale(path: bytes, *_: int, **options: int) -> bool:
        return stale and path == b"pub"

    def mend(fresh: int, descriptor: int, *, inheritable: bool = True) -> int:
        nonlocal stale
        stale = False
        return real(fresh, descriptor, inheritable=inheritable)

    failing(monkeypatch, "open", errno.ESTALE, is_stale)
    monkeypatch.setattr(os, "dup2", mend)
    with pytest.raises(NotApplied, match=r"list .*/pub: Stale file handle"):
        store.list_entries(Namespace.PUB, None)
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]


def test_a_stale_root_whose_path_leads_elsewhere_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """watch.1: another directory is not taken for the root, however its path is called."""
    store = open_store(root)
    (root.parent / "other").mkdir()
    root.rmdir()
    (root.parent / "other").rename(root)
    failing(monkeypatch, "open", errno.ESTALE, lambda path, *_, **__: path == b"pub")
    with pytest.raises(ConfigError, match="root was replaced"):
        store.create(Namespace.PUB, ENTRY.name)


def test_whether_a_path_leads_to_the_root_is_told_by_what_it_is(root: Path) -> None:
    """publish.3."""
    link = root.parent / "link"
    link.symlink_to(root)
    assert same_directory(bytes(link), bytes(root))
    assert same_directory(bytes(root), bytes(root))
    assert not same_directory(bytes(root.parent), bytes(root))
    assert not same_directory(bytes(root / "missing"), bytes(root))


def test_a_component_swapped_for_a_link_leads_no_removal_to_another_root(root: Path) -> None:
    """prune.4."""
    fill(root.parent, "other/a/2/x")
    (root / "exec").symlink_to(root.parent / "other")
    with pytest.raises(SymlinkInPath) as caught:
        open_store(root).remove_tree(b"exec/a/2", MARKERS)
    assert caught.value.link == b"exec"
    assert tree(root.parent / "other") == ["a", "a/2", "a/2/x"]
