"""Names in `pub/` and `.publish/`: created once and durably, in races and with faults."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists, ConfigError, FormatError, NotApplied, OutcomeUnknown, PermanentFault
from publish.domain.ports import Namespace
from tests.support.directories import failing, fill, open_store, recorded

ENTRY = Entry.of(1, 2, b"run/2")
NAME = ENTRY.name.decode()


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/etc/passwd"), os.mkfifo])
def test_an_entry_that_is_not_a_regular_file_is_an_error_that_names_it(
    root: Path, make: Callable[[Path], None]
) -> None:
    """layout.4."""
    (root / "pub").mkdir()
    make(root / "pub" / NAME)
    with pytest.raises(FormatError, match=NAME):
        open_store(root).list_entries(Namespace.PUB, None)
    with pytest.raises(FormatError, match=NAME):
        open_store(root).create(Namespace.PUB, ENTRY.name)


def test_the_mode_and_size_of_an_entry_do_not_matter(root: Path) -> None:
    """layout.4."""
    (root / "pub").mkdir()
    (root / "pub" / NAME).write_text("not empty")
    (root / "pub" / NAME).chmod(0)
    assert open_store(root).list_entries(Namespace.PUB, None).names == [ENTRY.name]
    with pytest.raises(AlreadyExists):
        open_store(root).create(Namespace.PUB, ENTRY.name)


def test_a_name_that_is_not_utf_8_is_listed_as_it_is(root: Path) -> None:
    """layout.3, layout.4."""
    (root / "pub").mkdir()
    Path(os.fsdecode(bytes(root) + b"/pub/\xff")).touch()
    assert open_store(root).list_entries(Namespace.PUB, None).names == [b"\xff"]


def test_a_publication_is_durable_before_it_is_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """layout.7: the file, `pub/` and the root are synced, in this order."""
    store = open_store(root)
    with recorded(monkeypatch, "fsync") as calls:
        store.create(Namespace.PUB, ENTRY.name)
    assert [call for call in calls if call.startswith("fsync")] == [f"fsync {NAME}", "fsync pub", "fsync ."]


def test_a_publication_that_is_there_already_is_durable_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """layout.7: another process may have made it a moment ago."""
    store = open_store(root)
    store.create(Namespace.PUB, ENTRY.name)
    with recorded(monkeypatch, "fsync") as calls, pytest.raises(AlreadyExists):
        store.create(Namespace.PUB, ENTRY.name)
    assert [call for call in calls if call.startswith("fsync")] == [f"fsync {NAME}", "fsync pub", "fsync ."]


def test_an_entry_is_created_exclusively(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """layout.7: O_CREAT|O_EXCL."""
    flags: list[int] = []
    real = os.open

    def spy(path: bytes, flag: int, *more: int, **options: int) -> int:
        if path == ENTRY.name:
            flags.append(flag)
        return real(path, flag, *more, **options)

    store = open_store(root)
    monkeypatch.setattr(os, "open", spy)
    store.create(Namespace.PUB, ENTRY.name)
    assert flags[0] & (os.O_CREAT | os.O_EXCL) == os.O_CREAT | os.O_EXCL


def test_eight_processes_publish_one_save_and_one_says_published(root: Path) -> None:
    """layout.7, publish.4."""
    (root / "save").mkdir()
    program = [str(Path(sys.executable).with_name("publish")), "publish", "-checkpoint", str(root), "-epoch", "1"]
    for step in range(3):
        children = [
            subprocess.Popen(
                [*program, str(root / "save"), str(step)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for _ in range(8)
        ]
        said = [child.communicate(timeout=60) for child in children]
        assert [child.returncode for child in children] == [0] * 8
        assert sorted(out.split(" ")[0] for out, _ in said) == [""] * 7 + ["published"]
        assert sum("already published" in err for _, err in said) == 7


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO])
def test_a_full_or_read_only_disk_is_named_and_the_log_unharmed(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """publish.4: exit 1 with clear words."""
    store = open_store(root)
    store.create(Namespace.PUB, ENTRY.name)
    other = Entry.of(1, 3, b"run/3").name
    failing(monkeypatch, "open", code, lambda path, *_, **__: path == other)
    with pytest.raises(PermanentFault, match=os.strerror(code)) as refused:
        store.create(Namespace.PUB, other)
    is_full = code in (errno.ENOSPC, errno.EDQUOT)
    assert str(refused.value).endswith(" (make room by hand, then run publish prune)") is is_full
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]


def test_a_publication_whose_sync_fails_is_not_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """layout.7."""
    store = open_store(root)
    failing(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(PermanentFault, match="Input/output error"):
        store.create(Namespace.PUB, ENTRY.name)


def test_an_entry_that_is_made_but_not_synced_is_reported_as_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """publish.4: what may have happened is never told as what did not."""
    store = open_store(root)
    failing(monkeypatch, "fsync", errno.EDQUOT)
    for _ in range(2):
        with pytest.raises(PermanentFault, match=r"created, but not yet durable \(run this again\): Disk quota"):
            store.create(Namespace.PUB, ENTRY.name)
    monkeypatch.undo()
    with pytest.raises(AlreadyExists):
        store.create(Namespace.PUB, ENTRY.name)


def test_a_filesystem_without_directory_syncs_is_taken_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """layout.7: FUSE and CIFS answer EINVAL."""
    real = os.fsync

    def fail_for_directories(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(descriptor)

    store = open_store(root)
    monkeypatch.setattr(os, "fsync", fail_for_directories)
    store.create(Namespace.PUB, ENTRY.name)
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]


def test_an_entry_that_vanishes_while_it_is_listed_is_not_an_error(root: Path) -> None:
    """prune.8: entries come and go beside a reader."""
    store = open_store(root)
    names = [Entry.of(1, step, b"a").name for step in range(50)]
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            for name in names:
                store.create(Namespace.PUB, name)
            store.remove_entries(Namespace.PUB, names)

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        for _ in range(100):
            assert set(store.list_entries(Namespace.PUB, None).names) <= set(names)
    finally:
        stop.set()
        writer.join()


def test_an_entry_that_vanishes_where_names_have_no_types_is_not_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """prune.8: there, scandir asks for each file again, and says that one that is gone is not a file."""

    class Vanished:
        name = ENTRY.name
        path = bytes(root) + b"/pub/" + ENTRY.name

        def is_file(self, *, follow_symlinks: bool) -> bool:
            return False

    @contextmanager
    def scandir(path: bytes) -> Iterator[list[Vanished]]:
        yield [Vanished()]

    store = open_store(root)
    monkeypatch.setattr(os, "scandir", scandir)
    assert store.list_entries(Namespace.PUB, None).names == []


def test_a_filesystem_without_syncs_is_reported_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.3."""
    said: list[str] = []
    store = open_store(root, said.append)
    failing(monkeypatch, "fsync", errno.EOPNOTSUPP)
    for step in range(3):
        store.create(Namespace.PUB, Entry.of(1, step, b"a").name)
    assert len(said) == 1
    assert "does not support fsync" in said[0]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES, errno.EIO, errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("fails", [1, 2, 3])
def test_each_sync_that_is_refused_is_a_failure(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, fails: int
) -> None:
    """data.5: the entry's, the folder's and the root's."""
    calls = iter(range(1, 9))
    store = open_store(root)
    failing(monkeypatch, "fsync", code, lambda _: next(calls) == fails)
    with pytest.raises(PermanentFault, match=rf"not yet durable \(run this again\): {os.strerror(code)}"):
        store.create(Namespace.PUB, ENTRY.name)


def test_an_entry_that_another_user_may_not_read_is_published_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """layout.4: its mode does not matter, and its name is synced with the folder."""
    store = open_store(root)
    store.create(Namespace.PUB, ENTRY.name)
    failing(
        monkeypatch, "open", errno.EACCES, lambda path, flags, *_, **__: path == ENTRY.name and not flags & os.O_CREAT
    )
    with pytest.raises(AlreadyExists):
        store.create(Namespace.PUB, ENTRY.name)


def test_what_a_watch_finds_in_the_log_is_synced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.5: an entry whose maker was stopped before its sync; one that has gone is not missed."""
    store = open_store(root)
    store.sync_entries(Namespace.PUB, [ENTRY.name])
    fill(root, f"pub/{NAME}")
    with recorded(monkeypatch, "fsync") as calls:
        store.sync_entries(Namespace.PUB, [ENTRY.name, Entry.of(1, 3, b"gone").name])
    assert [call for call in calls if call.startswith("fsync")] == [f"fsync {NAME}", "fsync pub", "fsync ."]
    failing(monkeypatch, "fsync", errno.EACCES)
    with pytest.raises(PermanentFault, match="not yet durable"):
        store.sync_entries(Namespace.PUB, [ENTRY.name])


def test_a_second_removal_makes_durable_what_the_first_only_did(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """data.6: also where no name is given, or none is there."""
    store = open_store(root)
    (root / "pub").mkdir()
    for names in ([], [ENTRY.name]):
        with recorded(monkeypatch, "fsync") as calls:
            assert store.remove_entries(Namespace.PUB, names) == {}
        assert [call for call in calls if call.startswith("fsync")] == ["fsync pub"]
    failing(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(PermanentFault, match="not yet durable"):
        store.remove_entries(Namespace.PUB, [])


def test_a_creation_whose_reply_is_lost_may_have_happened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nfs.6: on a soft mount; a listing certainly did nothing."""
    store = open_store(root, outlives_faults=True)
    (root / "pub").mkdir()
    failing(monkeypatch, "open", errno.ETIMEDOUT, lambda path, *_, **__: path in (ENTRY.name, b"pub"))
    with pytest.raises(OutcomeUnknown):
        store.create(Namespace.PUB, ENTRY.name)
    with pytest.raises(NotApplied):
        store.list_entries(Namespace.PUB, None)


@pytest.mark.parametrize(("call", "content"), [("open", b""), ("link", b"content")])
def test_a_name_that_is_refused_and_there_is_taken(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: str, content: bytes
) -> None:
    """nfs.7: sshfs answers the loser of a race with EPERM."""
    store = open_store(root)

    def makes_the_entry(*arguments: bytes, **_: int) -> bool:
        return ENTRY.name in arguments and (call == "link" or bool(int(arguments[1]) & os.O_EXCL))

    with monkeypatch.context() as patch:
        failing(patch, call, errno.EPERM, makes_the_entry)
        with pytest.raises(PermanentFault, match="Operation not permitted"):
            store.create(Namespace.PUB, ENTRY.name, content)
    store.create(Namespace.PUB, ENTRY.name)
    failing(monkeypatch, call, errno.EPERM, makes_the_entry)
    with pytest.raises(AlreadyExists):
        store.create(Namespace.PUB, ENTRY.name, content)


def test_the_limit_of_a_name_is_the_filesystems(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """layout.8: that of `pub/`, or of the root, or 255."""
    store = open_store(root)
    store.check_name_length(b"n" * 255)
    with pytest.raises(ConfigError, match="256 bytes and the limit is 255, which leaves 133 to the path"):
        store.check_name_length(b"n" * 256)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fpathconf", lambda descriptor, name: 143)
        for _ in range(2):
            with pytest.raises(ConfigError, match="144 bytes and the limit is 143, which leaves 63 to the path"):
                store.check_name_length(b"n" * 144)
            (root / "pub").mkdir(exist_ok=True)
    failing(monkeypatch, "fpathconf", errno.EINVAL)
    store.check_name_length(b"n" * 255)
    with pytest.raises(ConfigError, match="limit is 255"):
        store.check_name_length(b"n" * 256)
