"""A save's own data is durable before its publication: what is synced, in which order, and what may fail."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore
from publish.domain.errors import ConfigError, NotApplied, NotDurable, PermanentFault
from tests.support.directories import failing, fill, open_store

SAVE = b"exec/a/checkpoint-5"


@pytest.fixture
def save(root: Path) -> Path:
    folder = root / SAVE.decode()
    fill(folder, "trainer_state.json", "model/weights", "model/deep/er/shard")
    return folder


def synced(monkeypatch: pytest.MonkeyPatch, root: Path, path: bytes = SAVE) -> list[str]:
    """What a sync of the save brings to the disk, in order: paths relative to the root, absolute ones outside."""
    store = open_store(root)
    done: list[str] = []
    real_fsync, real_advise = os.fsync, os.posix_fadvise

    def note(what: str, descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        done.append(what + (os.path.relpath(name, root) if name.startswith(str(root)) else name))

    def fsync(descriptor: int) -> None:
        note("", descriptor)
        real_fsync(descriptor)

    def advise(descriptor: int, start: int, length: int, advice: int) -> None:
        assert (start, length, advice) == (0, 0, os.POSIX_FADV_DONTNEED)
        if os.path.isfile(f"/proc/self/fd/{descriptor}"):
            note("start ", descriptor)
        real_advise(descriptor, start, length, advice)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        patch.setattr(os, "posix_fadvise", advise)
        store.sync_save(path)
    return done


@pytest.mark.parametrize("act", [PosixStore.sync_save, lambda store, path: store.list_files(path, None)])
def test_a_save_that_is_nested_too_deep_is_a_fault(
    root: Path, save: Path, act: Callable[[PosixStore, bytes], object]
) -> None:
    """data.3, verify.7: 399 can be read, and no number of them exhausts the stack or the descriptors."""
    directory = os.open(save, os.O_RDONLY)
    for depth in range(450):
        if depth == 399:
            act(open_store(root), SAVE)
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    with pytest.raises(PermanentFault, match=f"^nested deeper than 400 folders: {save}$"):
        act(open_store(root), SAVE)


def test_all_of_a_save_is_synced_and_each_folder_after_what_it_holds(
    root: Path, save: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """data.1."""
    done = [name for name in synced(monkeypatch, root) if not name.startswith("start")]
    place = SAVE.decode()
    assert sorted(done[:-4]) == [
        f"{place}/model",
        f"{place}/model/deep",
        f"{place}/model/deep/er",
        f"{place}/model/deep/er/shard",
        f"{place}/model/weights",
        f"{place}/trainer_state.json",
    ]
    assert done[-4:] == [place, "exec/a", "exec", "."]
    for path in done[:-1]:
        assert done.index(path) < done.index(os.path.dirname(path) or ".")


def test_the_writeback_of_all_files_is_started_before_the_first_is_waited_for(
    root: Path, save: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """data.2."""
    done = synced(monkeypatch, root)
    assert all(name.startswith("start ") for name in done[:3])
    assert not any(name.startswith("start ") for name in done[3:])
    assert {name.removeprefix("start ") for name in done[:3]} <= set(done[3:])


def test_the_systems_own_record_says_the_same(root: Path, save: Path, tmp_path: Path) -> None:
    """data.1, data.2: as strace(1) sees it; all that is opened in the save is opened to be read, no link followed."""
    strace = shutil.which("strace")
    assert strace is not None, "strace is missing (Debian: apt-get install strace)"
    (save / "link").symlink_to("/etc/passwd")
    log = tmp_path / "strace"
    program = "import sys; from publish.adapters.posix import PosixStore; s = PosixStore(sys.argv[1].encode()); "
    subprocess.run(
        [strace, "-f", "-y", "-o", log, "-e", "trace=openat,fsync,fadvise64,sync_file_range",
         sys.executable, "-c", program + "s.sync_save(sys.argv[2].encode())", root, os.fsdecode(SAVE)],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    calls = [line.split(maxsplit=1)[1] for line in log.read_text().splitlines() if str(root) in line]
    starts = [number for number, call in enumerate(calls) if call.startswith("fadvise64") and "DONTNEED" in call]
    syncs = [number for number, call in enumerate(calls) if call.startswith("fsync")]
    assert len(starts) >= 3
    assert max(starts) < min(syncs)
    on_disk = {re.findall(r"<(.*?)>", calls[number])[0] for number in syncs}
    assert on_disk == {
        *(str(root / path) for path in (".", "exec", "exec/a")),
        *(str(path) for path in (save, *save.rglob("*")) if not path.is_symlink()),
    }
    inside = [call for call in calls if call.startswith("openat(") and f"<{save}" in call.split('"')[0]]
    assert len(inside) >= 6
    for call in inside:
        assert "O_RDONLY" in call
        assert "O_NOFOLLOW" in call
        assert "O_CREAT" not in call
        assert "O_NONBLOCK" in call or "O_DIRECTORY" in call


def test_links_inside_a_save_are_not_followed(root: Path, save: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.1."""
    fill(root.parent, "outside/x")
    (save / "folder").symlink_to(root.parent / "outside")
    (save / "file").symlink_to(root.parent / "outside/x")
    assert not any("outside" in name for name in synced(monkeypatch, root))


def test_a_save_behind_a_link_is_synced_where_it_lies(root: Path, save: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.1: with the folders on both ways to it."""
    (root / "by").mkdir()
    (root / "by/name").symlink_to("../exec/a")
    done = synced(monkeypatch, root, b"by/name/checkpoint-5")
    place = SAVE.decode()
    assert f"{place}/model/weights" in done
    assert {place, "exec/a", "exec", "by", "."} <= set(done)
    assert done[-1] == "."


def test_a_save_outside_the_root_is_synced_where_it_lies(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.1."""
    fill(root.parent, "scratch/saves/5/x")
    (root / "saves").symlink_to(root.parent / "scratch/saves")
    done = synced(monkeypatch, root, b"saves/5")
    scratch = str(root.parent / "scratch")
    assert {f"{scratch}/saves/5/x", f"{scratch}/saves/5", f"{scratch}/saves", scratch, "."} <= set(done)


def test_a_save_that_is_one_file_is_synced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.1."""
    fill(root, "run/last.ckpt")
    done = synced(monkeypatch, root, b"run/last.ckpt")
    assert done == ["start run/last.ckpt", "run/last.ckpt", "run", "."]


def test_what_vanishes_or_is_swapped_meanwhile_is_not_a_fault(
    root: Path, save: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """data.3."""
    open_store(root).sync_save(b"exec/a/missing")
    for code in (errno.ENOENT, errno.ESTALE, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
        with monkeypatch.context() as patch:
            failed = failing(patch, "open", code, lambda path, *_, **__: path in (b"weights", b"deep"))
            open_store(root).sync_save(SAVE)
            assert len(failed) == 4


def test_what_is_not_a_file_is_passed_over(root: Path, save: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.1: a FIFO does not hang it, also when it is swapped in."""
    os.mkfifo(save / "fifo")
    assert not any("fifo" in name for name in synced(monkeypatch, root))
    real = os.scandir

    def scandir(folder: int) -> Iterator[os.DirEntry[str]]:
        members = real(folder)
        if (save / "trainer_state.json").is_file():
            (save / "trainer_state.json").unlink()
            os.mkfifo(save / "trainer_state.json")
        return members

    monkeypatch.setattr(os, "scandir", scandir)
    assert not any("trainer_state" in name for name in synced(monkeypatch, root))


@pytest.mark.parametrize("name", ["weights", "deep"])
def test_what_cannot_be_opened_fails_and_is_named(
    root: Path, save: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """data.3."""
    store = open_store(root)
    with monkeypatch.context() as patch:
        failing(patch, "open", errno.EACCES, lambda path, *_, **__: path == name.encode())
        with pytest.raises(PermanentFault, match=rf"open {save}/model/{name} to sync it: Permission denied"):
            store.sync_save(SAVE)
    failing(monkeypatch, "open", errno.EMFILE, lambda path, *_, **__: path == name.encode())
    with pytest.raises(NotApplied, match="Too many open files"):
        open_store(root, outlives_faults=True).sync_save(SAVE)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EPERM, errno.EACCES, errno.ESTALE])
@pytest.mark.parametrize("path", ["exec/a/checkpoint-5/model/weights", "exec/a/checkpoint-5/model", "exec/a", "."])
def test_what_cannot_be_synced_fails_for_good_and_is_named(
    root: Path, save: Path, monkeypatch: pytest.MonkeyPatch, code: int, path: str
) -> None:
    """data.3, data.5, nfs.6: fsync(2) says it once; the next one would say that all is well."""
    identity = (root / path).stat().st_ino
    failing(monkeypatch, "fsync", code, lambda descriptor: os.fstat(descriptor).st_ino == identity)
    where = re.escape(str(root / path))
    with pytest.raises(NotDurable, match=rf"sync {where}: {os.strerror(code)}"):
        open_store(root).sync_save(SAVE)


def test_only_a_folder_above_a_save_may_refuse_to_be_opened(
    root: Path, save: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """data.5."""
    failed = failing(monkeypatch, "open", errno.EACCES, lambda path, *_, **__: path in (b"exec", b"."))
    open_store(root).sync_save(SAVE)
    assert len(failed) == 2


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_filesystem_without_syncs_is_reported_once(
    root: Path, save: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """data.3."""
    said: list[str] = []
    failing(monkeypatch, "fsync", code)
    store = open_store(root, said.append)
    store.sync_save(SAVE)
    store.sync_save(SAVE)
    assert len(said) == 1
    assert said[0].endswith(f"not known whether what is published survives a power loss: {os.strerror(code)}")


def test_a_writeback_that_cannot_be_started_is_waited_for_all_the_same(
    root: Path, save: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """data.2: a hint that the filesystem does not take."""
    failed = failing(monkeypatch, "posix_fadvise", errno.EINVAL)
    open_store(root).sync_save(SAVE)
    assert len(failed) >= 3


def test_no_descriptor_is_left_open(root: Path, save: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.1: also when a sync fails half way."""
    store = open_store(root)
    before = len(os.listdir("/proc/self/fd"))
    store.sync_save(SAVE)
    failing(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(PermanentFault):
        store.sync_save(SAVE)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_root_that_is_gone_is_not_a_save_that_has_vanished(root: Path) -> None:
    """data.3, watch.1."""
    store = open_store(root)
    root.rmdir()
    with pytest.raises(ConfigError, match="root is not there"):
        store.sync_save(SAVE)
