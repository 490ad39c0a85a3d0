"""Which publications have a save that is whole (verify.1 to verify.4)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from publish.domain.entry import Entry
from publish.domain.errors import ConfigError
from publish.domain.listing import entries
from publish.domain.ports import Namespace, ParallelMap, SavedFile, Store
from publish.domain.save_files import SaveFiles
from publish.domain.wholeness import Verdict, check_save, judge

OnVerdict = Callable[[bytes, Verdict], None]
"""Receives a save's path and its verdict."""


def published_saves(store: Store) -> list[bytes]:
    """The path of every published save, each once, in the log's order; of a repeated one the last counts."""
    ordered = sorted(entries(store, Namespace.PUB), reverse=True)
    return list(dict.fromkeys(entry.path for entry in ordered))[::-1]


class SaveChecker:
    """Judges saves, each once."""

    def __init__(self, store: Store, parallel: ParallelMap, on_verdict: OnVerdict) -> None:
        """`on_verdict` is called with each verdict as soon as it is known."""
        self._store = store
        self._parallel = parallel
        self._on_verdict = on_verdict
        self._whole: dict[bytes, bool] = {}

    def is_whole(self, path: bytes) -> bool:
        """Whether the save at `path` is whole. Raises as `check_save`."""
        if path not in self._whole:
            verdict = check_save(self._store, path, self._parallel)
            self._whole[path] = verdict.is_whole
            self._on_verdict(path, verdict)
        return self._whole[path]


def newest_whole(log: Collection[Entry], checker: SaveChecker) -> Entry | None:
    """The newest publication of a log whose save is whole; None if nothing is published.

    Raises ConfigError if there are publications and the save of none is whole.
    """
    published = sorted(log, reverse=True)
    for entry in published:
        if checker.is_whole(entry.path):
            return entry
    if published:
        raise ConfigError(
            f"no save to resume from is whole (each is named above with its fault): {len(published)} looked at"
        )
    return None


def latest_whole(store: Store, checker: SaveChecker) -> Entry | None:
    """As `newest_whole`, of what is published now."""
    return newest_whole(list(entries(store, Namespace.PUB)), checker)


class RepeatedChecker:
    """Judges saves that are still being written: each again only when its files have changed."""

    def __init__(self, store: Store, parallel: ParallelMap) -> None:
        self._store = store
        self._parallel = parallel
        self._judged: dict[bytes, tuple[list[SavedFile], Verdict]] = {}

    def check(self, path: bytes) -> Verdict:
        """What is known about the save at `path` now. Raises as `check_save`."""
        save = SaveFiles.listed(self._store, path)
        files = sorted(save.files.values())
        before = self._judged.get(path)
        if before is None or before[0] != files:
            before = files, judge(save, self._parallel)
            self._judged[path] = before
        verdict = before[1]
        if verdict.is_whole:
            del self._judged[path]
        return verdict
