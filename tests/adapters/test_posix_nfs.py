"""Network filesystems: absence is never taken from a cache, and removed files are not entries.

The kernel's part is proven on a real NFS; here the calls are shown to be made.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore, nfs
from publish.domain.entry import Entry
from publish.domain.errors import FormatError, NotApplied, PermanentFault, PublishError, StoreFault
from publish.domain.ports import Namespace
from tests.support.directories import failing, fill, open_store

ENTRY = Entry.of(1, 2, b"run/2")
NAME = ENTRY.name.decode()
REMOVED = ".nfs00000000deadbeef00000001"


class Cache:
    """A client's cache that knows some paths as absent until the folder that holds them is opened.

    So the Linux client does for its `acdirmax`; what is cached is the absence of names below a folder.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path, *folders: str) -> None:
        self._stale = {(root / folder).stat().st_ino for folder in folders}
        self.asked = 0
        self._open = os.open
        monkeypatch.setattr(os, "open", self._opening)
        for call in ("stat", "lstat"):
            monkeypatch.setattr(os, call, self._looking(getattr(os, call)))

    def _opening(self, path: bytes, flags: int, *mode: int, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            self._refuse_cached(path, dir_fd)
        descriptor = self._open(path, flags, *mode, dir_fd=dir_fd)
        if flags & os.O_DIRECTORY and not flags & os.O_PATH:
            self.asked += 1
            self._stale.discard(os.fstat(descriptor).st_ino)
        return descriptor

    def _looking(self, real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def look(path: bytes, *, dir_fd: int | None = None, **options: bool) -> os.stat_result:
            if dir_fd is not None:
                self._refuse_cached(path, dir_fd)
            return real(path, dir_fd=dir_fd, **options)

        return look

    def _refuse_cached(self, path: bytes, folder: int) -> None:
        """Walks down as the kernel does, by what it knows."""
        walked = b"/proc/self/fd/%d" % folder
        for component in path.split(b"/"):
            if component not in (b".", b"") and Path(os.fsdecode(walked)).stat().st_ino in self._stale:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            walked += b"/" + component


LOOKS: dict[str, Callable[[PosixStore], object]] = {
    "save": lambda store: store.save_exists(b"exec/a/1"),
    "marker": lambda store: store.size(b"exec/a/1/.metadata"),
    "sentinel": lambda store: store.exists(b"exec/a/1/.metadata"),
    "version": lambda store: store.version(b"exec/a/1/.metadata"),
    "state": lambda store: store.read(b"exec/a/1/.metadata", 10),
    "part": lambda store: store.read_range(b"exec/a/1/.metadata", 0, 10),
    "saves": lambda store: store.list_directories(b"exec/a", None).names,
    "files": lambda store: store.list_files_in(b"exec/a/1", None).names,
    "tree": lambda store: store.list_files(b"exec/a/1", None).files,
    "real path": lambda store: store.real_path(b"exec/a/1"),
    "log": lambda store: store.list_entries(Namespace.PUB, None).names,
    "records": lambda store: store.list_entries(Namespace.PRUNE, None).names,
    "record": lambda store: store.read_record(Namespace.PRUNE, ENTRY.name) is not None,
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
@pytest.mark.parametrize("stale", [["."], [".", "exec", "exec/a", "exec/a/1", ".publish", ".publish/prune", "pub"]])
def test_what_another_node_has_just_made_is_seen(
    root: Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[PosixStore], object], stale: list[str]
) -> None:
    """nfs.1, nfs.2."""
    store = open_store(root)
    fill(root, "exec/a/1/.metadata", f"pub/{NAME}", f".publish/prune/{NAME}")
    cache = Cache(monkeypatch, root, *stale)
    assert look(store)
    assert cache.asked > 0


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_a_server_that_cannot_be_asked_is_an_error_and_never_an_absence(
    root: Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[PosixStore], object]
) -> None:
    """nfs.1, nfs.2: the export is withdrawn, or the server stopped."""
    failing(monkeypatch, "open", errno.ETIMEDOUT, lambda path, *_, **__: path == bytes(root) and opened)
    opened = False
    for outlives_faults, error in ((True, NotApplied), (False, PublishError)):
        store = open_store(root, outlives_faults=outlives_faults)
        opened = True
        with pytest.raises(error, match="Connection timed out"):
            look(store)
        opened = False


def test_a_removed_entry_that_a_process_still_reads_is_not_an_entry(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nfs.3: on NFS alone."""
    fill(root, f"pub/{NAME}", f"pub/{REMOVED}", f".publish/prune/{REMOVED}")
    device = (root / "pub").stat().st_dev
    store = open_store(root)

    def names(kind: str, namespace: Namespace) -> set[bytes]:
        monkeypatch.setattr(nfs, "open", lambda *_, **__: mounts(device, kind), raising=False)
        return set(store.list_entries(namespace, None).names)

    listings = {
        kind: (names(kind, Namespace.PUB), names(kind, Namespace.PRUNE)) for kind in ("nfs", "nfs4", "ext4", "fuse.nfs")
    }
    assert listings["nfs"] == listings["nfs4"] == ({ENTRY.name}, set())
    assert listings["ext4"] == listings["fuse.nfs"] == ({ENTRY.name, REMOVED.encode()}, {REMOVED.encode()})


def mounts(device: int, kind: str) -> io.StringIO:
    """A table of mounts as proc_pid_mountinfo(5) has it, with optional fields and a blank in a path."""
    return io.StringIO(
        "22 27 0:2100 / /proc rw,relatime - proc proc rw\n"
        f"98 27 {os.major(device)}:{os.minor(device)} /export /ckpt\\040x rw shared:5 master:2 - {kind} server:/e rw\n"
    )


@pytest.mark.parametrize("name", [".nfs", REMOVED + "0", REMOVED[:-1], ".nfsg0000000deadbeef00000001", "x" + REMOVED])
def test_what_is_not_quite_such_a_name_is_listed(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """nfs.3, layout.4."""
    fill(root, f"pub/{name}")
    monkeypatch.setattr(nfs, "_is_on_nfs", lambda _: True)
    assert open_store(root).list_entries(Namespace.PUB, None).names == [name.encode()]


def test_the_mounts_are_looked_at_only_when_such_a_name_is_met(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nfs.3: and a node without such a table is not on NFS."""
    fill(root, f"pub/{NAME}")
    looked: list[str] = []

    def missing(path: str, **_: str) -> io.StringIO:
        looked.append(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(nfs, "open", missing, raising=False)
    store = open_store(root)
    assert store.list_entries(Namespace.PUB, None).names == [ENTRY.name]
    assert looked == []
    fill(root, f"pub/{REMOVED}")
    assert len(store.list_entries(Namespace.PUB, None).names) == 2
    assert looked == ["/proc/self/mountinfo"]


@pytest.mark.parametrize("code", [errno.ESTALE, errno.EIO, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE])
def test_a_passing_fault_may_be_tried_again(root: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """nfs.6: by a watch; by other verbs only what was stale."""
    fill(root, "exec/a/1/.metadata")
    failing(monkeypatch, "scandir", code)
    failing(monkeypatch, "pread", code)

    def faults(*, outlives_faults: bool) -> tuple[type[Exception], type[Exception]]:
        store = open_store(root, outlives_faults=outlives_faults)
        with pytest.raises(StoreFault, match=os.strerror(code)) as listing:
            store.list_directories(b"exec/a", None)
        with pytest.raises(PublishError, match=os.strerror(code)) as reading:
            store.read(b"exec/a/1/.metadata", 10)
        return listing.type, reading.type

    assert faults(outlives_faults=True) == (NotApplied, NotApplied)
    final = (NotApplied, NotApplied) if code == errno.ESTALE else (PermanentFault, FormatError)
    assert faults(outlives_faults=False) == final
