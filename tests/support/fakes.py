"""The ports of the domain in memory, deterministic."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from publish.domain.entry import Entry
from publish.domain.errors import (
    AlreadyExists,
    ConfigError,
    FormatError,
    PermanentFault,
    PublishError,
    StoreFault,
    SymlinkInPath,
)
from publish.domain.ports import DatedName, DatedPage, FilesPage, Namespace, Page, Removal, SavedFile

NAME_LIMIT = 255


class FakeStore:
    """A Store in memory: files by path; folders exist as prefixes of paths, as on S3."""

    def __init__(self, page_size: int = 1000) -> None:
        self.names: dict[Namespace, set[bytes]] = {namespace: set() for namespace in Namespace}
        self.records: dict[tuple[Namespace, bytes], bytes] = {}
        self.files: dict[bytes, bytes] = {}
        self.synced: list[bytes] = []
        self.foreign: set[bytes] = set()
        self.times: dict[bytes, float] = {}
        self.links: set[bytes] = set()
        self.stuck: set[bytes] = set()
        # How often a test has said that a file was written anew, perhaps with the same content.
        self.rewritten: dict[bytes, int] = {}
        self.page_size = page_size

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        return self._page(sorted(self.names[namespace]), token)

    def list_dated(self, namespace: Namespace, token: str | None) -> DatedPage:
        page = self.list_entries(namespace, token)
        return DatedPage([DatedName(name, self.times.get(name, 0.0)) for name in page.names], page.next_token)

    def check_name_length(self, name: bytes) -> None:
        if len(name) > NAME_LIMIT:
            raise ConfigError(f"over {NAME_LIMIT} bytes: {len(name)}")

    def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
        if name in self.names[namespace]:
            raise AlreadyExists("taken")
        self.names[namespace].add(name)
        self.records[namespace, name] = content

    def read_record(self, namespace: Namespace, name: bytes) -> bytes | None:
        return self.records.get((namespace, name), b"") if name in self.names[namespace] else None

    def sync_entries(self, namespace: Namespace, names: Sequence[bytes]) -> None:
        self.synced += [namespace.value + b"/" + name for name in names]

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        faults = {name: PermanentFault("stuck") for name in names if name in self.stuck}
        self.names[namespace] -= set(names) - set(faults)
        return faults

    def save_exists(self, path: bytes) -> bool:
        return path in self.files or any(self._inside(path))

    def list_directories(self, path: bytes, token: str | None) -> Page:
        inside = path + b"/" if path else b""
        below = (file[len(inside) :] for file in self.files if file.startswith(inside))
        return self._page(sorted({rest.split(b"/")[0] for rest in below if b"/" in rest}), token)

    def list_files_in(self, path: bytes, token: str | None) -> Page:
        inside = path + b"/" if path else b""
        below = (file[len(inside) :] for file in self.files if file.startswith(inside))
        return self._page(sorted(rest for rest in below if b"/" not in rest), token)

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        page = self._page(sorted(self._inside(path)), token)
        files = [SavedFile(name[len(path) + 1 :], len(self.files[name]), self._version(name)) for name in page.names]
        return FilesPage(files, page.next_token)

    def exists(self, path: bytes) -> bool:
        return self.save_exists(path)

    def size(self, path: bytes) -> int | None:
        return len(self.files[path]) if path in self.files else None

    def version(self, path: bytes) -> str | None:
        return self._version(path) if path in self.files else None

    def read(self, path: bytes, limit: int) -> bytes | None:
        if path in self.files:
            return self.files[path][:limit]
        if any(self._inside(path)):
            raise FormatError("not a regular file")
        return None

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        content = self.read(path, sys.maxsize)
        if content is None:
            raise FormatError("not there")
        first = max(0, len(content) + start) if start < 0 else start
        return content[first : first + length]

    def sync_save(self, path: bytes) -> None:
        self.synced.append(path)

    def real_path(self, path: bytes) -> bytes | None:
        return path

    def owner_is_trusted(self, path: bytes, reference: bytes) -> bool:
        return path not in self.foreign

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        for link in self.links:
            if path == link or path.startswith(link + b"/"):
                raise SymlinkInPath(link)
        found = sorted(self._inside(path)) + [path] * (path in self.files)
        for name in first:
            self.files.pop(path + b"/" + name, None)
        for file in found[: self.page_size]:
            if file not in self.stuck:
                self.files.pop(file, None)
        if any(file in self.stuck for file in found):
            raise PermanentFault("stuck")
        return Removal(found=bool(found), incomplete=len(found) > self.page_size)

    def _version(self, path: bytes) -> str:
        return f"{self.files[path].hex()}-{self.rewritten.get(path, 0)}"

    def _inside(self, path: bytes) -> Iterator[bytes]:
        return (file for file in self.files if file.startswith(path + b"/"))

    def _page(self, names: list[bytes], token: str | None) -> Page:
        start = int(token or 0)
        end = start + self.page_size
        return Page(names[start:end], str(end) if end < len(names) else None)


class FakeClock:
    """Moves only by `sleep` and when a test adds to `time`."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


class FakeRandom:
    """Returns the middle of every interval, and numbered tokens."""

    def __init__(self) -> None:
        self.drawn: list[tuple[float, float]] = []
        self._tokens = 0

    def uniform(self, low: float, high: float) -> float:
        self.drawn.append((low, high))
        return (low + high) / 2

    def token(self) -> str:
        self._tokens += 1
        return f"token{self._tokens}"


class FakeReport:
    """Keeps what was reported."""

    def __init__(self) -> None:
        self.said: list[tuple[str, object]] = []
        self.progressed: list[tuple[int, int]] = []
        self.notes: list[str] = []

    def published(self, entry: Entry) -> None:
        self.said.append(("published", entry))

    def already_published(self, entry: Entry) -> None:
        self.said.append(("already", entry))

    def note(self, line: str) -> None:
        self.notes.append(line)

    def retracted(self, entry: Entry) -> None:
        self.said.append(("retracted", entry))

    def stays(self, path: bytes, reason: str) -> None:
        self.said.append(("stays", (path, reason)))

    def not_published(self, entry: Entry, fault: PublishError) -> None:
        self.said.append(("not published", entry))

    def would_remove(self, path: bytes) -> None:
        self.said.append(("would remove", path))

    def kept(self, path: bytes, reasons: Sequence[str]) -> None:
        self.said.append(("kept", (path, *reasons)))

    def missing(self, path: bytes) -> None:
        self.said.append(("missing", path))

    def removed_above(self, entry: Entry, highest: int) -> None:
        self.said.append(("removed above", (entry, highest)))

    def nothing_left(self) -> None:
        self.said.append(("nothing left", None))

    def removed(self, path: bytes) -> None:
        self.said.append(("removed", path))

    def left_behind_link(self, path: bytes, link: bytes) -> None:
        self.said.append(("left", (path, link)))

    def left_behind_links(self, saves: int) -> None:
        self.said.append(("left in all", saves))

    def removal_failed(self, path: bytes, fault: PublishError) -> None:
        self.said.append(("failed", path))

    def progress(self, done: int, total: int) -> None:
        self.progressed.append((done, total))

    def all(self, what: str) -> list[object]:
        return [thing for said, thing in self.said if said == what]
