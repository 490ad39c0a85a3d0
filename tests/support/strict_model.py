"""A filesystem that keeps only what was synced, as a value: operations change it, and power cuts are drawn from it.

It is stricter than any journal. fsync(2) of a file keeps its content and nothing else; fsync(2) of a directory
keeps its names and nothing else. Of every name and content that changed since its last sync, a cut keeps any value
that it had since then, independently of all others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

T = TypeVar("T")

ROOT = 1
# A tree by path: a file's bytes, a link's target as text, None for a directory.
Content = bytes | str | None
Tree = Mapping[bytes, Content]


class Op(NamedTuple):
    """One operation that changed something. Files and directories are given by number."""

    kind: str
    inode: int
    name: bytes = b""
    data: bytes = b""
    offset: int = 0
    other: int = 0


class File:
    """A regular file; `contents` are those since the last sync, the durable one first, the present one last."""

    def __init__(self, content: bytes = b"") -> None:
        self.contents = [content]


class Link:
    """A symbolic link. Its target is as durable as its name."""

    def __init__(self, target: bytes) -> None:
        self.target = target


class Directory:
    """A directory; for each name the numbers that it had since the last sync, the present one last (0: not there)."""

    def __init__(self) -> None:
        self.names: dict[bytes, list[int]] = {}

    def get(self, name: bytes) -> int:
        return self.names[name][-1] if name in self.names else 0

    def put(self, name: bytes, inode: int) -> None:
        self.names.setdefault(name, [0]).append(inode)

    def present(self) -> dict[bytes, int]:
        return {name: values[-1] for name, values in self.names.items() if values[-1]}


class Point(NamedTuple):
    """Something that a cut decides on: a directory's name, or a file's content (name None)."""

    inode: int
    name: bytes | None
    values: int


Choice = Callable[[Point], int]


class Model:
    """The filesystem's state, in memory and on the disk."""

    def __init__(self) -> None:
        self.nodes: dict[int, File | Link | Directory] = {ROOT: Directory()}
        self._next = ROOT + 1

    @classmethod
    def of(cls, tree: Tree) -> Model:
        """A filesystem that holds `tree` durably; directories above what is named are made."""
        model = cls()
        for path, content in sorted(tree.items()):
            model.add(path, content)
        model.sync_all()
        return model

    def copy(self) -> Model:
        return copy.deepcopy(self)

    def add(self, path: bytes, content: Content) -> None:
        """Makes a file, a link (text) or a directory (None), unsynced, with the directories above it."""
        *above, name = path.split(b"/")
        parent = ROOT
        for component in above:
            below = self.directory(parent).get(component)
            parent = below or self._make(parent, component, Directory())
        if content is None:
            if not self.directory(parent).get(name):
                self._make(parent, name, Directory())
        elif isinstance(content, str):
            self._make(parent, name, Link(content.encode()))
        else:
            self.file(self._make(parent, name, File())).contents.append(content)

    def sync_all(self) -> None:
        """As sync(2) does."""
        for inode in self.nodes:
            self.apply(Op("sync", inode))

    def apply(self, op: Op) -> int:
        """Carries out what the kernel has found to be allowed; returns the number of what was made."""
        made: int = getattr(self, f"_{op.kind}")(op) or 0
        return made

    def find(self, path: bytes) -> int:
        """The number of what stands at a path; 0 if nothing does."""
        inode = ROOT
        for component in filter(None, path.split(b"/")):
            node = self.nodes[inode]
            inode = node.get(component) if isinstance(node, Directory) else 0
            if not inode:
                return 0
        return inode

    def directory(self, inode: int) -> Directory:
        node = self.nodes[inode]
        assert isinstance(node, Directory)
        return node

    def file(self, inode: int) -> File:
        node = self.nodes[inode]
        assert isinstance(node, File)
        return node

    def points(self, top: int = ROOT) -> list[Point]:
        """All that a cut decides on, of what it may leave reachable from the directory `top`."""
        found: dict[Point, None] = {}
        seen: set[int] = set()
        queue = [top]
        while queue:
            inode = queue.pop()
            node = self.nodes[inode]
            if inode in seen or isinstance(node, Link):
                continue
            seen.add(inode)
            if isinstance(node, File):
                if len(node.contents) > 1:
                    found[Point(inode, None, len(node.contents))] = None
                continue
            for name, values in node.names.items():
                queue += [value for value in values if value]
                if len(values) > 1:
                    found[Point(inode, name, len(values))] = None
        return list(found)

    def tree(self, choose: Choice, top: int = ROOT) -> Tree:
        """What is below `top` after a cut that decides as `choose` does (an index into a point's values)."""
        tree: dict[bytes, Content] = {}
        self._grow(tree, b"", top, choose)
        return tree

    def path(self, inode: int) -> bytes:
        """The present path of a file or directory; of one that was removed, its number."""
        if inode == ROOT:
            return b""
        for parent, node in self.nodes.items():
            if isinstance(node, Directory):
                for name, values in node.names.items():
                    if values[-1] == inode:
                        above = self.path(parent)
                        return above + b"/" + name if above else name
        return b"(removed, inode %d)" % inode

    def _grow(self, tree: dict[bytes, Content], path: bytes, inode: int, choose: Choice) -> None:
        node = self.nodes[inode]
        if isinstance(node, Link):
            tree[path] = node.target.decode()
        elif isinstance(node, File):
            tree[path] = _one(node.contents, Point(inode, None, len(node.contents)), choose)
        else:
            if path:
                tree[path] = None
            for name, values in sorted(node.names.items()):
                below = _one(values, Point(inode, name, len(values)), choose)
                if below:
                    self._grow(tree, path + b"/" + name if path else name, below, choose)

    def _make(self, parent: int, name: bytes, node: File | Link | Directory) -> int:
        inode = self._next
        self._next += 1
        self.nodes[inode] = node
        self.directory(parent).put(name, inode)
        return inode

    def _create(self, op: Op) -> int:
        return self._make(op.inode, op.name, File())

    def _mkdir(self, op: Op) -> int:
        return self._make(op.inode, op.name, Directory())

    def _symlink(self, op: Op) -> int:
        return self._make(op.inode, op.name, Link(op.data))

    def _link(self, op: Op) -> None:
        self.directory(op.inode).put(op.name, op.other)

    def _unlink(self, op: Op) -> None:
        self.directory(op.inode).put(op.name, 0)

    def _write(self, op: Op) -> None:
        contents = self.file(op.inode).contents
        content = contents[-1].ljust(op.offset, b"\0")
        contents.append(content[: op.offset] + op.data + content[op.offset + len(op.data) :])

    def _truncate(self, op: Op) -> None:
        contents = self.file(op.inode).contents
        contents.append(contents[-1][: op.offset].ljust(op.offset, b"\0"))

    def _sync(self, op: Op) -> None:
        node = self.nodes[op.inode]
        if isinstance(node, File):
            del node.contents[:-1]
        elif isinstance(node, Directory):
            node.names = {name: [inode] for name, inode in node.present().items()}


def _one(values: list[T], point: Point, choose: Choice) -> T:
    return values[choose(point)] if len(values) > 1 else values[0]
