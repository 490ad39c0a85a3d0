"""The strict filesystem's calls, as FUSE makes them: they change the model, and are written down."""

from __future__ import annotations

import errno
import os
import signal
import stat
import threading
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import NamedTuple

from tests.support.strict_model import Directory, Link, Model, Op


class Stop(NamedTuple):
    """Stops the process that makes change number `after` (from 1 on), as SIGSTOP does, once it is made."""

    after: int


class Fault(NamedTuple):
    """The next `times` calls of a kind (a method of the calls below) on a name fail with an errno."""

    call: str
    name: bytes
    errno: int
    times: int


class Setup(NamedTuple):
    """What a recording starts with."""

    model: Model
    stop: Stop | None
    faults: list[Fault]


def serve(path: str, control: Connection) -> None:
    """Mounts at `path`, and serves until it is unmounted. The test commands it through `control`."""
    from mfusepy import FUSE  # noqa: PLC0415  (loads libfuse, which only the server needs)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calls = _Calls(control)
    threading.Thread(target=calls.obey, daemon=True).start()
    # No caches: a model that was loaded is what the next look finds. No .fuse_hidden files.
    FUSE(
        calls,
        path,
        foreground=True,
        nothreads=True,
        hard_remove=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
    )


class _Calls:
    """What FUSE asks for. Paths are text, starting with a slash; handles are inode numbers."""

    use_ns = True

    def __init__(self, control: Connection) -> None:
        self._control = control
        self._lock = threading.Lock()
        self._model = Model()
        self._log: list[Op] = []
        self._stop: Stop | None = None
        self._faults: list[Fault] = []

    def obey(self) -> None:
        """Answers the test until it closes its end."""
        while True:
            try:
                wanted = self._control.recv()
            except EOFError:
                return
            with self._lock:
                if wanted is None:
                    self._control.send(self._log)
                else:
                    self._model, self._stop, self._faults = wanted
                    self._log = []
                    self._control.send("loaded")

    def init(self, _: str) -> None:
        self._control.send("ready")

    def destroy(self, _: str) -> None:
        return

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        self._fail("getattr", path)
        with self._lock:
            inode = fh or self._existing(path)
            node = self._model.nodes[inode]
        if isinstance(node, Directory):
            kind, size = stat.S_IFDIR | 0o755, 0
        elif isinstance(node, Link):
            kind, size = stat.S_IFLNK | 0o777, len(node.target)
        else:
            kind, size = stat.S_IFREG | 0o644, len(node.contents[-1])
        return {"st_mode": kind, "st_size": size, "st_nlink": 1, "st_uid": os.getuid(), "st_gid": os.getgid()}

    def readdir(self, path: str, fh: int) -> Iterable[str]:
        self._fail("readdir", path)
        with self._lock:
            names = list(self._model.directory(fh).present())
        return [".", "..", *map(os.fsdecode, names)]

    def statfs(self, path: str) -> dict[str, int]:
        return {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": 1 << 20, "f_bavail": 1 << 20, "f_namemax": 255}

    def access(self, path: str, amode: int) -> int:
        return 0

    def open(self, path: str, flags: int) -> int:
        self._fail("open", path)
        with self._lock:
            return self._existing(path)

    def opendir(self, path: str) -> int:
        self._fail("opendir", path)
        return self.open(path, os.O_DIRECTORY)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        self._fail("read", path)
        with self._lock:
            return self._model.file(fh).contents[-1][offset : offset + size]

    def readlink(self, path: str) -> str:
        with self._lock:
            node = self._model.nodes[self._existing(path)]
        assert isinstance(node, Link)
        return os.fsdecode(node.target)

    def flush(self, path: str, fh: int) -> int:
        return 0

    release = releasedir = flush

    def chmod(self, path: str, mode: int) -> int:
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        return 0

    def create(self, path: str, mode: int) -> int:
        self._fail("create", path)
        return self._change("create", path)

    def mkdir(self, path: str, mode: int) -> int:
        self._fail("mkdir", path)
        self._change("mkdir", path)
        return 0

    def symlink(self, target: str, source: str) -> int:
        self._change("symlink", target, data=os.fsencode(source))
        return 0

    def link(self, target: str, source: str) -> int:
        self._fail("link", target)
        with self._lock:
            other = self._existing(source)
        self._change("link", target, other=other)
        return 0

    def unlink(self, path: str) -> int:
        self._fail("unlink", path)
        self._change("unlink", path)
        return 0

    def rmdir(self, path: str) -> int:
        self._fail("rmdir", path)
        with self._lock:
            if self._model.directory(self._existing(path)).present():
                raise OSError(errno.ENOTEMPTY, "")
        self._change("unlink", path)
        return 0

    def rename(self, old: str, new: str) -> int:
        with self._lock:
            other = self._existing(old)
        self._change("link", new, other=other)
        self._change("unlink", old)
        return 0

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        with self._lock:
            self._record(Op("truncate", fh or self._existing(path), offset=length))
        return 0

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._fail("write", path)
        with self._lock:
            self._record(Op("write", fh, data=data, offset=offset))
        return len(data)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._fail("fsync", path)
        with self._lock:
            self._record(Op("sync", fh))
        return 0

    fsyncdir = fsync

    def _fail(self, call: str, path: str | None) -> None:
        """Raises the fault that the test wants here, if any. An unlinked file has no path."""
        name = os.path.basename(os.fsencode(path or ""))
        with self._lock:
            for number, fault in enumerate(self._faults):
                if (fault.call, fault.name) == (call, name) and fault.times:
                    self._faults[number] = fault._replace(times=fault.times - 1)
                    raise OSError(fault.errno, "")

    def _existing(self, path: str) -> int:
        inode = self._model.find(os.fsencode(path))
        if not inode:
            raise OSError(errno.ENOENT, "")
        return inode

    def _change(self, kind: str, path: str, data: bytes = b"", other: int = 0) -> int:
        above, _, name = os.fsencode(path).rpartition(b"/")
        with self._lock:
            parent = self._existing(os.fsdecode(above))
            return self._record(Op(kind, parent, name, data, other=other))

    def _record(self, op: Op) -> int:
        made = self._model.apply(op)
        self._log.append(op)
        if self._stop and len(self._log) == self._stop.after:
            from mfusepy import fuse_get_context  # noqa: PLC0415  (loaded already)

            os.kill(fuse_get_context()[2], signal.SIGSTOP)
        return made
