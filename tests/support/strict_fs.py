"""The strict model as a mounted filesystem (FUSE), which writes down every change that a program makes.

It runs in a process of its own and serves one call at a time, so the order of the operations is the order of the log.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import stat
import subprocess
import threading
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from tests.support.strict_model import Directory, Link, Model, Op

_PATIENCE = 20.0  # seconds


class Stop(NamedTuple):
    """Stops the process that makes change number `after` (from 1 on), as SIGSTOP does, once it is made."""

    after: int


class StrictMount:
    """A mounted model. `load` starts a recording, `taken` ends it."""

    def __init__(self, path: Path) -> None:
        """Mounts at `path`, an empty directory. Needs /dev/fuse and libfuse."""
        self.path = path
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._server = context.Process(target=_serve, args=(str(path), theirs), daemon=True)
        self._server.start()
        theirs.close()
        self._receive("ready")

    def load(self, model: Model, stop: Stop | None = None) -> None:
        """Puts `model` in place of what is there, and forgets the log."""
        self._ours.send((model, stop))
        self._receive("loaded")

    def taken(self) -> list[Op]:
        """The changes since `load`."""
        self._ours.send(None)
        if not self._ours.poll(_PATIENCE):
            raise TimeoutError("the strict filesystem does not answer")
        ops: list[Op] = self._ours.recv()
        return ops

    def close(self) -> None:
        """Unmounts."""
        subprocess.run(["fusermount3", "-u", "-z", str(self.path)], check=True, timeout=_PATIENCE)
        self._server.join(_PATIENCE)
        self._ours.close()

    def _receive(self, expected: str) -> None:
        if not self._ours.poll(_PATIENCE):
            raise TimeoutError(f"the strict filesystem is not {expected}")
        assert self._ours.recv() == expected


def _serve(path: str, control: Connection) -> None:
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
                    self._model, self._stop = wanted
                    self._log = []
                    self._control.send("loaded")

    def init(self, _: str) -> None:
        self._control.send("ready")

    def destroy(self, _: str) -> None:
        return

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
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
        with self._lock:
            names = list(self._model.directory(fh).present())
        return [".", "..", *map(os.fsdecode, names)]

    def statfs(self, path: str) -> dict[str, int]:
        return {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": 1 << 20, "f_bavail": 1 << 20, "f_namemax": 255}

    def access(self, path: str, amode: int) -> int:
        return 0

    def open(self, path: str, flags: int) -> int:
        with self._lock:
            return self._existing(path)

    def opendir(self, path: str) -> int:
        return self.open(path, os.O_DIRECTORY)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
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
        return self._change("create", path)

    def mkdir(self, path: str, mode: int) -> int:
        self._change("mkdir", path)
        return 0

    def symlink(self, target: str, source: str) -> int:
        self._change("symlink", target, data=os.fsencode(source))
        return 0

    def link(self, target: str, source: str) -> int:
        with self._lock:
            other = self._existing(source)
        self._change("link", target, other=other)
        return 0

    def unlink(self, path: str) -> int:
        self._change("unlink", path)
        return 0

    def rmdir(self, path: str) -> int:
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
        with self._lock:
            self._record(Op("write", fh, data=data, offset=offset))
        return len(data)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        with self._lock:
            self._record(Op("sync", fh))
        return 0

    fsyncdir = fsync

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
