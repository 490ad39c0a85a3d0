"""What the port's contract cannot say of a directory: durability, links, kills, races of processes."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore, leads_to
from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists, ConfigError, FormatError, PermanentFault, SymlinkInPath
from publish.domain.frameworks import MARKERS
from publish.domain.ports import Namespace
from publish.domain.prune import prune
from tests.support.fakes import FakeReport
from tests.support.faults import Crash
from tests.support.retrying import retrying

ENTRY = Entry.of(1, 2, b"run/2")
NAME = ENTRY.name.decode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def open_store(root: Path) -> PosixStore:
    return PosixStore(bytes(root))


def fill(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_root_that_is_not_there_or_no_directory_is_refused(root: Path) -> None:
    """R4."""
    (root / "file").touch()
    (root / "dangling").symlink_to("nowhere")
    for name in ("missing", "file", "dangling"):
        with pytest.raises(ConfigError, match=name):
            open_store(root / name)


def test_a_root_may_be_a_link(root: Path) -> None:
    """R4, prune.4: the root itself may be a link."""
    link = root.parent / "link"
    link.symlink_to(root)
    store = open_store(link)
    store.create(Namespace.PUB, ENTRY.name)
    fill(root, "run/2/x")
    assert store.remove_tree(b"run/2", MARKERS).found
    assert tree(root) == ["pub", f"pub/{NAME}", "run"]


def test_a_root_that_goes_away_is_never_an_empty_one(root: Path) -> None:
    """watch.1, resolve.3: for every call that could take its absence for emptiness."""
    store = open_store(root)
    root.rmdir()
    for call in (
        lambda: store.list_entries(Namespace.PUB, None),
        lambda: store.list_directories(b"exec/a", None),
        lambda: store.list_directories(b"", None),
        lambda: store.create(Namespace.PUB, ENTRY.name),
        lambda: store.remove_entries(Namespace.PUB, [ENTRY.name]),
        lambda: store.remove_tree(b"run/2", MARKERS),
    ):
        with pytest.raises(ConfigError, match="root is not there"):
            call()
    root.touch()
    with pytest.raises(ConfigError, match="root is not there"):
        store.list_entries(Namespace.PUB, None)
    with pytest.raises(ConfigError, match="root is not there"):
        store.list_directories(b"exec/a", None)


@pytest.mark.parametrize("make", [lambda pub: pub.symlink_to("nowhere"), lambda pub: pub.touch()])
def test_a_pub_that_is_no_directory_is_an_error_and_never_an_empty_log(
    root: Path, make: Callable[[Path], None]
) -> None:
    """L5."""
    make(root / "pub")
    with pytest.raises(FormatError, match="dangling link, or no directory"):
        open_store(root).list_entries(Namespace.PUB, None)
    with pytest.raises(FormatError, match="dangling link, or no directory"):
        open_store(root).create(Namespace.PUB, ENTRY.name)


def test_a_pub_that_is_a_link_to_a_directory_is_followed(root: Path) -> None:
    """L5."""
    (root / "elsewhere").mkdir()
    (root / "pub").symlink_to("elsewhere")
    open_store(root).create(Namespace.PUB, ENTRY.name)
    assert open_store(root).list_entries(Namespace.PUB, None).names == [ENTRY.name]
    assert (root / "elsewhere" / NAME).exists()


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/etc/passwd"), os.mkfifo])
def test_an_entry_that_is_no_regular_file_is_an_error_that_names_it(root: Path, make: Callable[[Path], None]) -> None:
    """L4."""
    (root / "pub").mkdir()
    make(root / "pub" / NAME)
    with pytest.raises(FormatError, match=NAME):
        open_store(root).list_entries(Namespace.PUB, None)
    with pytest.raises(FormatError, match=NAME):
        open_store(root).create(Namespace.PUB, ENTRY.name)


def test_the_mode_and_size_of_an_entry_do_not_matter(root: Path) -> None:
    """L4."""
    (root / "pub").mkdir()
    (root / "pub" / NAME).write_text("not empty")
    (root / "pub" / NAME).chmod(0)
    assert open_store(root).list_entries(Namespace.PUB, None).names == [ENTRY.name]
    with pytest.raises(AlreadyExists):
        open_store(root).create(Namespace.PUB, ENTRY.name)


def test_a_name_that_is_not_utf_8_is_listed_as_it_is(root: Path) -> None:
    """L3, L4."""
    (root / "pub").mkdir()
    Path(os.fsdecode(bytes(root) + b"/pub/\xff")).touch()
    assert open_store(root).list_entries(Namespace.PUB, None).names == [b"\xff"]


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[list[str]]:
    """Notes the system's calls with what they are about."""
    calls: list[str] = []
    paths: dict[int, str] = {}

    def wrap(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object, **options: object) -> object:
            result = real(*arguments, **options)
            about = arguments[0]
            if name == "open":
                paths[int(result)] = os.path.basename(os.fsdecode(about))  # type: ignore[arg-type]
            if name == "fsync":
                about = paths[int(about)]  # type: ignore[call-overload]
            calls.append(f"{name} {os.path.basename(os.fsdecode(about))}")  # type: ignore[arg-type]
            return result

        monkeypatch.setattr(os, name, call)

    with monkeypatch.context():
        for name in ("open", *names):
            wrap(name)
        yield calls
        monkeypatch.undo()


def test_a_publication_is_durable_before_it_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L7: the file, `pub/` and the root are synced, in this order."""
    store = open_store(root)
    with recorded(monkeypatch, "fsync") as calls:
        store.create(Namespace.PUB, ENTRY.name)
    assert [call for call in calls if call.startswith("fsync")] == [f"fsync {NAME}", "fsync pub", "fsync root"]


def test_a_publication_that_is_there_already_is_durable_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L7: another process may have made it a moment ago."""
    store = open_store(root)
    store.create(Namespace.PUB, ENTRY.name)
    with recorded(monkeypatch, "fsync") as calls, pytest.raises(AlreadyExists):
        store.create(Namespace.PUB, ENTRY.name)
    assert [call for call in calls if call.startswith("fsync")] == [f"fsync {NAME}", "fsync pub", "fsync root"]


def test_an_entry_is_created_exclusively(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L7: O_CREAT|O_EXCL."""
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


def test_removed_entries_are_durably_gone_before_their_saves_are_touched(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """prune.1, prune.6, prune.7: the order of effects, with the syncs between them."""
    store = open_store(root)
    for step in (1, 2):
        fill(root, f"run/{step}/a", f"run/{step}/trainer_state.json")
        store.create(Namespace.PUB, Entry.of(1, step, b"run/%d" % step).name)
    first = Entry.of(1, 1, b"run/1").name.decode()
    with recorded(monkeypatch, "fsync", "unlink", "rmdir", "mkdir") as calls:
        assert prune(retrying(store), FakeReport(), 1, map)
    effects = [call for call in calls if not call.startswith("open")]
    assert effects == [
        "mkdir prune",
        f"fsync {first}",
        "fsync prune",
        "fsync root",
        f"unlink {first}",
        "fsync pub",
        "unlink trainer_state.json",
        "fsync 1",
        "unlink a",
        "rmdir 1",
        "fsync run",
        f"unlink {first}",
        "fsync prune",
    ]


def test_eight_processes_publish_one_save_and_one_says_published(root: Path) -> None:
    """L7, publish.4."""
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
    real = os.open

    def refuse(path: bytes, *arguments: int, **options: int) -> int:
        if path == other:
            raise OSError(code, os.strerror(code))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermanentFault, match=os.strerror(code)):
        store.create(Namespace.PUB, other)
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]


def test_a_sync_that_fails_is_never_a_publication_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L7."""

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = open_store(root)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(PermanentFault, match="Input/output error"):
        store.create(Namespace.PUB, ENTRY.name)


def test_an_entry_that_is_made_but_not_synced_is_said_to_be_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """publish.4: what may have happened is never told as what did not."""

    def fail(descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    store = open_store(root)
    monkeypatch.setattr(os, "fsync", fail)
    for _ in range(2):
        with pytest.raises(
            PermanentFault, match=r"it is there, but may not survive a crash until this is run again: Disk quota"
        ):
            store.create(Namespace.PUB, ENTRY.name)
    monkeypatch.undo()
    with pytest.raises(AlreadyExists):
        store.create(Namespace.PUB, ENTRY.name)


def test_a_root_that_may_not_be_read_takes_publications(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """publish.4: its folders are there, so there is nothing of it to sync."""
    store = open_store(root)
    real = os.open

    def refuse(path: bytes, *arguments: int, **options: int) -> int:
        if path == bytes(root):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    store.create(Namespace.PUB, ENTRY.name)
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]


def test_a_filesystem_without_directory_syncs_is_taken_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L7: FUSE and CIFS answer EINVAL."""
    real = os.fsync

    def fail_for_directories(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(descriptor)

    store = open_store(root)
    monkeypatch.setattr(os, "fsync", fail_for_directories)
    store.create(Namespace.PUB, ENTRY.name)
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]


def test_links_among_the_save_folders_are_passed_over(root: Path) -> None:
    """watch.1."""
    fill(root, "run/checkpoint-1/x", "run/file")
    (root / "run" / "checkpoint-2").symlink_to("checkpoint-1")
    (root / "run" / "checkpoint-3").symlink_to("nowhere")
    assert open_store(root).list_directories(b"run", None).names == [b"checkpoint-1"]


def test_the_saves_that_are_no_folder_are_an_error(root: Path) -> None:
    """watch.1."""
    fill(root, "run")
    with pytest.raises(ConfigError, match=r"no directory: .*/run"):
        open_store(root).list_directories(b"run", None)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("other"), os.mkfifo])
def test_a_state_that_is_no_regular_file_is_a_fault_and_does_not_hang(root: Path, make: Callable[[Path], None]) -> None:
    """watch.4."""
    fill(root, "other")
    make(root / "trainer_state.json")
    with pytest.raises(FormatError, match="not a regular file"):
        open_store(root).read(b"trainer_state.json", 10)


def test_a_state_that_cannot_be_read_is_a_fault(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """watch.4: when it is opened and while it is read."""
    fill(root, "trainer_state.json")
    store = open_store(root)

    def refuse(*arguments: object, **options: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    for call in ("read", "open"):
        with monkeypatch.context() as patched:
            patched.setattr(os, call, refuse)
            with pytest.raises(FormatError, match="not readable: Permission denied"):
                store.read(b"trainer_state.json", 10)


def test_a_read_leaves_no_descriptor_open(root: Path) -> None:
    """watch.4."""
    fill(root, "trainer_state.json")
    (root / "folder").mkdir()
    before = os.listdir("/proc/self/fd")
    store = open_store(root)
    for _ in range(5):
        store.read(b"trainer_state.json", 10)
        with pytest.raises(FormatError):
            store.read(b"folder", 10)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_metadata_that_is_no_regular_file_does_not_count(root: Path) -> None:
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


def test_a_state_that_another_node_removed_is_not_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """watch.4: NFS says so when it is opened, or while it is read."""
    fill(root, "trainer_state.json")
    store = open_store(root)

    def stale(*arguments: object, **options: object) -> int:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "read", stale)
    assert store.read(b"trainer_state.json", 10) == b""
    monkeypatch.setattr(os, "open", stale)
    assert store.read(b"trainer_state.json", 10) is None


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


def test_whether_a_path_leads_to_the_root_is_told_by_what_it_is(root: Path) -> None:
    """publish.3."""
    link = root.parent / "link"
    link.symlink_to(root)
    is_root = leads_to(bytes(root))
    assert is_root(bytes(link))
    assert is_root(bytes(root))
    assert not is_root(bytes(root.parent))
    assert not is_root(bytes(root / "missing"))


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


class TestKills:
    """prune.6, prune.7: killed at any effect, the next prune leaves what an unkilled one leaves."""

    EFFECTS = ("unlink", "rmdir", "mkdir", "fsync", "open")

    def world(self, root: Path) -> PosixStore:
        root.mkdir()
        store = open_store(root)
        for step in range(4):
            fill(root, f"run/{step}/trainer_state.json", f"run/{step}/a", f"run/{step}/deep/b")
            store.create(Namespace.PUB, Entry.of(1, step, b"run/%d" % step).name)
        fill(root, "run/1/inner/.metadata")
        store.create(Namespace.PUB, Entry.of(0, 7, b"run/1/inner").name)
        return store

    def prune(self, store: PosixStore) -> None:
        assert prune(retrying(store), FakeReport(), 2, map)

    def kill_at(self, monkeypatch: pytest.MonkeyPatch, effect: int, how: Callable[[], None]) -> list[int]:
        """Ends the process's doings before the given effect; returns a counter of effects."""
        seen = [0]
        for name in self.EFFECTS:
            real = getattr(os, name)

            def call(*arguments: object, real: Callable[..., object] = real, **options: object) -> object:
                if seen[0] == effect:
                    how()
                seen[0] += 1
                return real(*arguments, **options)

            monkeypatch.setattr(os, name, call)
        return seen

    def crash(self) -> None:
        raise Crash

    def test_every_point_of_a_prune_may_be_its_last(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = self.world(root / "whole")
        with monkeypatch.context() as patch:
            effects = self.kill_at(patch, -1, self.crash)
            self.prune(whole)
        assert effects[0] > 40
        for effect in range(effects[0]):
            folder = root / f"killed-{effect}"
            store = self.world(folder)
            with monkeypatch.context() as patch:
                self.kill_at(patch, effect, self.crash)
                with pytest.raises(Crash):
                    self.prune(store)
            self.assert_saves_are_whole(store, folder)
            self.prune(store)
            assert tree(folder) == tree(root / "whole")

    def test_a_process_that_is_really_killed_leaves_the_same(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A spot check with SIGKILL, which runs no handler at all."""
        self.prune(self.world(root / "whole"))
        for effect in range(3, 60, 11):
            folder = root / f"killed-{effect}"
            store = self.world(folder)
            child = os.fork()
            if child == 0:
                self.kill_at(monkeypatch, effect, lambda: os.kill(os.getpid(), signal.SIGKILL))
                self.prune(store)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            self.assert_saves_are_whole(store, folder)
            self.prune(store)
            assert tree(folder) == tree(root / "whole")

    def assert_saves_are_whole(self, store: PosixStore, folder: Path) -> None:
        for name in store.list_entries(Namespace.PUB, None).names:
            save = folder / os.fsdecode(Entry.parse(name).path)
            assert (save / ".metadata").exists() or {"trainer_state.json", "a", "deep"} <= set(os.listdir(save))


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


def test_what_vanishes_while_it_is_listed_is_no_error(root: Path) -> None:
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


def test_an_entry_that_vanishes_where_names_have_no_types_is_no_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """prune.8: there, scandir asks for each file again, and says that one which has gone is no file."""

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
