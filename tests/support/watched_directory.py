"""A watch on a real directory, scanned by hand, and what it published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from publish.adapters.posix.store import PosixStore
from publish.domain.entry import Entry
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.layout import Framework
from publish.domain.root import PosixRoot
from publish.domain.watch import Watcher
from tests.support.fakes import FakeReport


class WatchedFolder:
    """`saves`: the folder of the saves, which begins empty."""

    def __init__(self, root: Path, framework: str | Framework, epoch: int = 1) -> None:
        self.saves = root / "saves"
        self.saves.mkdir(parents=True, exist_ok=True)
        self.report = FakeReport()
        chosen = FRAMEWORKS[framework] if isinstance(framework, str) else framework
        path = bytes(root)
        self.watcher = Watcher(PosixStore(path), self.report, PosixRoot(path), chosen, b"saves", epoch)
        self.watcher.begin()

    def scan(self) -> list[str]:
        """Scans once; the names of the saves that this published."""
        before = len(self.report.said)
        self.watcher.scan()
        return list(self._names(before))

    def published(self) -> list[str]:
        return list(self._names(0))

    def _names(self, start: int) -> Iterator[str]:
        for said, what in self.report.said[start:]:
            if said == "published" and isinstance(what, Entry):
                yield what.path.decode().removeprefix("saves/")
