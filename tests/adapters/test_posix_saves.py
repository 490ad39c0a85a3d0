"""What frameworks wrote: read below the root, and never read as absent from a cache."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore
from publish.domain.errors import ConfigError, FormatError, NotApplied
from publish.domain.ports import SavedFile
from tests.support.directories import failing, fill, open_store
from tests.support.ownership import give_to


def test_links_among_the_save_folders_are_passed_over(root: Path) -> None:
    """watch.1."""
    fill(root, "run/checkpoint-1/x", "run/file")
    (root / "run" / "checkpoint-2").symlink_to("checkpoint-1")
    (root / "run" / "checkpoint-3").symlink_to("nowhere")
    assert open_store(root).list_directories(b"run", None).names == [b"checkpoint-1"]


def test_a_saves_that_is_not_a_folder_is_an_error(root: Path) -> None:
    """watch.1."""
    fill(root, "run")
    with pytest.raises(ConfigError, match=r"not a directory: .*/run"):
        open_store(root).list_directories(b"run", None)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("other"), os.mkfifo])
def test_a_state_that_is_not_a_regular_file_is_a_fault_and_does_not_hang(
    root: Path, make: Callable[[Path], None]
) -> None:
    """watch.4."""
    fill(root, "other")
    make(root / "trainer_state.json")
    with pytest.raises(FormatError, match="not a regular file"):
        open_store(root).read(b"trainer_state.json", 10)


def test_a_state_that_cannot_be_read_is_a_fault(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """watch.4: when it is opened and while it is read."""
    fill(root, "trainer_state.json")
    store = open_store(root)
    for call in ("pread", "open"):
        failing(monkeypatch, call, errno.EACCES)
        with pytest.raises(FormatError, match="not readable: Permission denied"):
            store.read(b"trainer_state.json", 10)


def test_a_metadata_that_is_not_a_regular_file_does_not_count(root: Path) -> None:
    """watch.2."""
    fill(root, "other")
    (root / ".metadata").symlink_to("other")
    assert open_store(root).size(b".metadata") is None
    (root / "folder").mkdir()
    assert open_store(root).size(b"folder") is None


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("nowhere"), os.mkfifo])
def test_whatever_has_the_sentinels_name_is_there(root: Path, make: Callable[[Path], None]) -> None:
    """watch.2: when in doubt, a save is incomplete."""
    make(root / "checkpoint-is-incomplete.txt")
    assert open_store(root).exists(b"checkpoint-is-incomplete.txt")


def test_a_save_behind_a_link_may_be_published(root: Path) -> None:
    """publish.3: links below the root are neither resolved nor refused."""
    fill(root.parent, "outside/5/x")
    (root / "link").symlink_to(root.parent / "outside")
    store = open_store(root)
    assert store.save_exists(b"link/5")
    (root / "loop").symlink_to("loop")
    assert not store.save_exists(b"loop")
    assert not store.save_exists(b"n" * 300)
    os.mkfifo(root / "fifo")
    assert not store.save_exists(b"fifo")


def test_a_state_that_goes_stale_while_it_is_read_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nfs.6: the file was replaced on another node; what is read instead is the next attempt's."""
    fill(root, "trainer_state.json")
    failing(monkeypatch, "pread", errno.ESTALE)
    with pytest.raises(NotApplied, match="Stale file handle"):
        open_store(root).read(b"trainer_state.json", 10)


def test_a_state_that_another_node_removed_is_not_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """watch.4, nfs.2: it is stale at the first look, and gone at the fresh one."""
    fill(root, "trainer_state.json")
    store = open_store(root)
    first = iter([True])

    def is_stale(path: bytes, *_: object, **__: object) -> bool:
        if path != b"trainer_state.json" or not next(first, False):
            return False
        (root / "trainer_state.json").unlink()
        return True

    failing(monkeypatch, "open", errno.ESTALE, is_stale)
    assert store.read(b"trainer_state.json", 10) is None


LOOKS: dict[str, tuple[str, Callable[[PosixStore], object]]] = {
    "save": ("stat", lambda store: store.save_exists(b"exec/a")),
    "sentinel": ("lstat", lambda store: store.exists(b"exec/a")),
    "marker": ("open", lambda store: store.read(b"exec/a", 10)),
    "saves": ("open", lambda store: store.list_directories(b"exec/a", None)),
    "real path": ("stat", lambda store: store.real_path(b"exec/a")),
}


@pytest.mark.parametrize(("call", "look"), LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("above", [False, True], ids=["it", "the folder above"])
def test_what_stays_stale_is_tried_again_and_never_absent(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    look: Callable[[PosixStore], object],
    above: bool,  # noqa: FBT001  (a parameter)
) -> None:
    """nfs.2, nfs.6: a save that is not complete would else be published, as if its sentinel were gone."""
    fill(root, "exec/a/x")
    store = open_store(root)
    failing(monkeypatch, call, errno.ESTALE, lambda path, *_, **__: path in (b"exec/a", b"a"))
    failing(monkeypatch, "open", errno.ESTALE, lambda path, *_, **__: above and path == b"exec")
    with pytest.raises(NotApplied, match="Stale file handle"):
        look(store)


def test_no_more_of_a_file_is_read_than_was_asked_for(root: Path) -> None:
    """watch.4."""
    (root / "state").write_bytes(b"0123456789")
    store = open_store(root)
    assert store.read(b"state", 4) == b"0123"
    assert store.read(b"state", 11) == b"0123456789"
    assert store.read_range(b"state", 2, 3) == b"234"
    assert store.read_range(b"state", -3, 98) == b"789"
    assert store.read_range(b"state", -98, 98) == b"0123456789"
    assert store.read_range(b"state", 8, 98) == b"89"
    assert store.read_range(b"state", 20, 98) == b""


def test_a_link_is_followed_for_a_range_alone(root: Path) -> None:
    """watch.4, verify.5."""
    fill(root, "file")
    (root / "link").symlink_to("file")
    os.mkfifo(root / "fifo")
    store = open_store(root)
    assert store.read_range(b"link", 0, 10) == b"x"
    with pytest.raises(FormatError, match="not a regular file"):
        store.read(b"link", 10)
    for path in (b"fifo", b"."):
        with pytest.raises(FormatError, match="not a regular file"):
            store.read_range(path, 0, 10)
    with pytest.raises(FormatError, match="not there"):
        store.read_range(b"missing", 0, 10)


def test_the_version_of_a_file_changes_when_it_is_written_anew(root: Path) -> None:
    """watch.9."""
    fill(root, "s/marker", "s/other")
    store = open_store(root)
    first = store.version(b"s/marker")
    assert first == store.version(b"s/marker") is not None
    os.utime(root / "s/marker", ns=(1, 1))
    second = store.version(b"s/marker")
    (root / "s/other").rename(root / "s/marker")
    assert len({first, second, store.version(b"s/marker")}) == 3
    assert store.version(b"s") is None
    assert store.version(b"s/missing") is None


def listed(root: Path, path: bytes) -> dict[bytes, int]:
    page = open_store(root).list_files(path, None)
    assert page.next_token is None
    files = {file.path: file.size for file in page.files}
    assert len(files) == len(page.files)
    return files


def test_every_file_of_a_save_is_listed_links_followed(root: Path) -> None:
    """verify.1."""
    fill(root, "blobs/weights", "blobs/deep/more", "s/1/config.json", "s/1/optimizer/0")
    (root / "s/1/model").symlink_to("../../blobs/weights")
    (root / "s/1/linked").symlink_to("../../blobs/deep")
    (root / "s/1/dangling").symlink_to("nowhere")
    (root / "s/1/loop").symlink_to("loop")
    os.mkfifo(root / "s/1/fifo")
    assert listed(root, b"s/1") == {
        b"config.json": 1,
        b"optimizer/0": 1,
        b"model": 1,
        b"linked/more": 1,
        b"dangling": -1,
        b"loop": -1,
    }
    assert listed(root, b"s/2") == {}
    assert listed(root, b"s/1/config.json") == {}
    file = open_store(root).list_files(b"s/1/optimizer", None).files[0]
    assert file == SavedFile(b"0", 1, open_store(root).version(b"s/1/optimizer/0") or "")


def test_links_lead_no_listing_round_in_a_circle(root: Path) -> None:
    """verify.5: nor through every way that links to one another make."""
    names = [f"d{number}" for number in range(12)]
    fill(root, *(f"s/{name}/file" for name in names))
    for name in names:
        (root / "s" / name / "up").symlink_to("..")
        for other in names:
            (root / "s" / name / f"to-{other}").symlink_to(f"../{other}")
    files = listed(root, b"s")
    assert {f"{name}/file".encode() for name in names} <= files.keys()
    assert len(files) <= 12 * 13


def test_where_a_path_leads_below_the_root(root: Path) -> None:
    """alias.1."""
    fill(root, "run/checkpoint-200/x")
    fill(root.parent, "outside/x")
    (root / "run/last").symlink_to("checkpoint-200")
    (root / "again").symlink_to(root / "run")
    (root / "out").symlink_to(root.parent / "outside")
    (root / "dangling").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    (root / "self").symlink_to(".")
    link = root.parent / "link"
    link.symlink_to(root)
    for store in (open_store(root), open_store(link)):
        assert store.real_path(b"run/checkpoint-200") == b"run/checkpoint-200"
        assert store.real_path(b"run/last") == b"run/checkpoint-200"
        assert store.real_path(b"again/last/x") == b"run/checkpoint-200/x"
        assert store.real_path(b"self") == b""
        for elsewhere in (b"out", b"out/x", b"dangling", b"loop", b"missing"):
            assert store.real_path(elsewhere) is None


def test_a_save_belongs_to_the_user_to_root_or_to_the_owner_of_the_saves(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """watch.1: a checkpoint is code to many trainers."""
    fill(root, "exec/a/1/trainer_state.json")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    store = open_store(root)
    assert store.owner_is_trusted(b"exec/a/1", b"exec/a")
    assert store.owner_is_trusted(b"exec/a/missing", b"exec/a")
    give_to(monkeypatch, root / "exec/a/1", 1000)
    assert store.owner_is_trusted(b"exec/a/1", b"exec/a")
    give_to(monkeypatch, root / "exec/a/1", 2000)
    assert not store.owner_is_trusted(b"exec/a/1", b"exec/a")
    give_to(monkeypatch, root / "exec/a", 2000)
    assert store.owner_is_trusted(b"exec/a/1", b"exec/a")
    give_to(monkeypatch, root / "exec/a/1/trainer_state.json", 3000)
    assert not store.owner_is_trusted(b"exec/a/1/trainer_state.json", b"exec/a")
