"""Records a command's file operations below one folder, with strace, as `recording` replays them."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.recording import Operation

CALLS = (
    "open,openat,creat,close,write,pwrite64,writev,pwritev,pwritev2,lseek,ftruncate,truncate,sendfile,copy_file_range,"
    "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,symlinkat,link,linkat"
)
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|\?)(?:<(.*)>)?(?: .*)?$")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)$")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_DESCRIPTOR = re.compile(r"(\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2})*)(?:\(deleted\))?>")


def record(command: Sequence[str | Path], saves: Path, scratch: Path, env: Mapping[str, str]) -> list[Operation]:
    """Runs the command, which must succeed, and returns what it did in `saves`, an empty folder."""
    trace = scratch / "strace.txt"
    words = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-y",
        "-xx",
        "-s",
        str(1 << 26),
        "-e",
        f"trace={CALLS}",
        "-o",
        trace,
        *command,
    ]
    subprocess.run(words, env=dict(env), check=True, timeout=300)
    model = _Filesystem(os.fsencode(saves.resolve()))
    with trace.open() as lines:
        for call in _calls(lines):
            model.apply(call)
    model.expect_as_on_disk(saves)
    return model.operations


def _calls(lines: Iterator[str] | Sequence[str]) -> Iterator[re.Match[str]]:
    """The calls that succeeded, in the order in which they ended."""
    begun: dict[str, str] = {}
    for line in lines:
        process, _, rest = line.rstrip("\n").partition(" ")
        rest = rest.lstrip()
        if rest.endswith("<unfinished ...>"):
            begun[process] = rest.removesuffix("<unfinished ...>").rstrip()
            continue
        if resumed := _RESUMED.match(rest):
            rest = begun.pop(process) + resumed[1]
        call = _CALL.match(rest)
        if call and not call[3].startswith(("-", "?")):
            yield call


def _bytes(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


class _Filesystem:
    """What the calls make of the files that they touch."""

    def __init__(self, saves: bytes) -> None:
        self._saves = saves
        self._files: dict[bytes, bytearray] = {}
        self._positions: dict[tuple[str, bytes], int] = {}
        self.operations: list[Operation] = []

    def apply(self, call: re.Match[str]) -> None:
        name, arguments, result = call[1], call[2], int(call[3])
        strings = [_bytes(text) for text in _STRING.findall(arguments)]
        descriptors = [(number, _bytes(path)) for number, path in _DESCRIPTOR.findall(arguments)]
        match name:
            case "open" | "openat" | "creat":
                self._open(str(result), _bytes(call[4] or ""), name + arguments)
            case "close":
                self._positions.pop(descriptors[0], None) if descriptors else None
            case "lseek" if descriptors:
                self._positions[descriptors[0]] = result
            case "write" | "writev" if descriptors:
                position = self._positions.get(descriptors[0], 0)
                self._write(descriptors[0][1], position, b"".join(strings)[:result])
                self._positions[descriptors[0]] = position + result
            case "pwrite64" | "pwritev" | "pwritev2" if descriptors:
                position = int(arguments.split("], ")[-1].split(", ")[-2 if name == "pwritev2" else -1])
                self._write(descriptors[0][1], position, b"".join(strings)[:result])
            case "sendfile" | "copy_file_range" if len(descriptors) > 1:
                self._copy(name, descriptors, result)
            case "ftruncate" if descriptors:
                self._truncate(descriptors[0][1], int(arguments.rpartition(", ")[2]))
            case "truncate":
                self._truncate(self._absolute(b"", strings[0]), int(arguments.rpartition(", ")[2]))
            case _:
                self._change(name, arguments, strings, [path for _, path in descriptors])

    def _open(self, number: str, path: bytes, arguments: str) -> None:
        self._positions[number, path] = 0
        if "O_CREAT" not in arguments and "O_TRUNC" not in arguments and not arguments.startswith("creat"):
            return
        if path not in self._files or "O_TRUNC" in arguments:
            self._files[path] = bytearray()
            self._note("create", path)
        if "O_APPEND" in arguments:
            self._positions[number, path] = len(self._files[path])

    def _write(self, path: bytes, position: int, data: bytes) -> None:
        if path not in self._files or not data:
            return
        content = self._files[path]
        content.extend(bytes(max(0, position - len(content))))
        content[position : position + len(data)] = data
        self._note("write", path, position, base64.b64encode(data).decode())

    def _copy(self, name: str, descriptors: list[tuple[str, bytes]], count: int) -> None:
        out, source = descriptors if name == "sendfile" else descriptors[::-1]
        position = self._positions.get(out, 0)
        content = self._files[source[1]] if source[1] in self._files else Path(os.fsdecode(source[1])).read_bytes()
        self._write(out[1], position, bytes(content[position : position + count]))
        self._positions[out] = position + count

    def _truncate(self, path: bytes, size: int) -> None:
        if path in self._files:
            content = self._files[path]
            content.extend(bytes(max(0, size - len(content))))
            del content[size:]
            self._note("truncate", path, size)

    def _change(self, name: str, arguments: str, strings: list[bytes], folders: list[bytes]) -> None:
        """The calls that take paths; the `at` forms each with the folder that a path is relative to."""
        paths = [
            self._absolute(folders[index] if index < len(folders) else b"", path) for index, path in enumerate(strings)
        ]
        match name.removesuffix("2").removesuffix("at"):
            case "rename":
                self._rename(*paths)
            case "unlink" if "AT_REMOVEDIR" in arguments:
                self._note("rmdir", paths[0])
            case "rmdir":
                self._note("rmdir", paths[0])
            case "unlink":
                self._files.pop(paths[0], None)
                self._note("unlink", paths[0])
            case "mkdir":
                self._note("mkdir", paths[0])
            case "symlink":
                self._note(
                    "symlink", self._absolute(folders[0] if folders else b"", strings[1]), os.fsdecode(strings[0])
                )
            case "link":
                self._files[paths[1]] = self._files[paths[0]]
                self._note("link", paths[1], os.fsdecode(os.path.relpath(paths[0], self._saves)))

    def _rename(self, old: bytes, new: bytes) -> None:
        for path in [path for path in self._files if path == old or path.startswith(old + b"/")]:
            self._files[new + path[len(old) :]] = self._files.pop(path)
        if not self._is_inside(old):
            for path in sorted(path for path in self._files if path == new or path.startswith(new + b"/")):
                # What comes from outside in one step is there in one step.
                self._note("place", path, base64.b64encode(self._files[path]).decode())
            return
        self._note("rename", old, os.fsdecode(os.path.relpath(new, self._saves)))

    def _absolute(self, folder: bytes, path: bytes) -> bytes:
        return os.path.normpath(os.path.join(folder or os.fsencode(os.getcwd()), path))

    def _is_inside(self, path: bytes) -> bool:
        return path.startswith(self._saves + b"/")

    def _note(self, kind: str, path: bytes, *rest: object) -> None:
        if self._is_inside(path):
            self.operations.append([kind, os.fsdecode(path[len(self._saves) + 1 :]), *rest])

    def expect_as_on_disk(self, saves: Path) -> None:
        """That nothing was written in a way that strace does not show (a mapping)."""
        on_disk = {
            os.fsencode(path.resolve()): path.read_bytes()
            for path in saves.rglob("*")
            if path.is_file() and not path.is_symlink()
        }
        ours = {path: bytes(content) for path, content in self._files.items() if self._is_inside(path)}
        assert ours == on_disk, sorted(
            path for path in on_disk.keys() | ours.keys() if on_disk.get(path) != ours.get(path)
        )
