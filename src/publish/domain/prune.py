"""Pruning: entries first, then the saves that nobody names any more.

At every moment the saves that entries in `pub/` name are untouched, and a save whose entry is
gone is on record in `prune/` until it is gone too: killed anywhere, the next prune finishes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby, islice

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists, PermanentFault, StoreFault, SymlinkInPath
from publish.domain.frameworks import MARKERS
from publish.domain.listing import entries
from publish.domain.ports import Namespace, ParallelMap, Report, Store
from publish.domain.retention import Folder, Reason, apply_retention, plan

# As many names as one request may remove (AWS, DeleteObjects).
_BATCH = 1000


def prune(store: Store, report: Report, keep: int, parallel: ParallelMap) -> bool:
    """Keeps the latest `keep` (at least 1) entries; removes the others, then what they named.

    Returns whether everything that had to go is gone; what is not was reported. Raises, with
    the work left to the next prune, where the log does not parse or the store gives up.
    """
    return _Prune(store, report, parallel).run(keep)


class _Prune:
    def __init__(self, store: Store, report: Report, parallel: ParallelMap) -> None:
        self._store = store
        self._report = report
        self._parallel = parallel
        self._all_gone = True

    def run(self, keep: int) -> bool:
        recorded = set(entries(self._store, Namespace.PRUNE))
        doomed = apply_retention(entries(self._store, Namespace.PUB), keep).removed
        recorded |= self._record([entry for entry in doomed if entry not in recorded])
        self._remove_entries([entry for entry in doomed if entry in recorded])
        # Read again: a publication that was made meanwhile protects its save (prune.2).
        remaining = set(entries(self._store, Namespace.PUB))
        self._remove_saves(plan(recorded, remaining), kept_on_record=remaining.intersection(doomed))
        return self._all_gone

    def _record(self, doomed: list[Entry]) -> set[Entry]:
        """Puts removals on record before they begin; returns those that are."""
        recorded = set()
        for entry, fault in zip(doomed, self._parallel(self._record_one, doomed), strict=True):
            if fault is None:
                recorded.add(entry)
            else:
                self._failed(_in_pub(entry.name), fault)
        return recorded

    def _record_one(self, entry: Entry) -> PermanentFault | None:
        try:
            self._store.create(Namespace.PRUNE, entry.name)
        except AlreadyExists:
            return None
        except PermanentFault as fault:
            return fault
        return None

    def _remove_entries(self, doomed: list[Entry]) -> None:
        for name, fault in self._remove_names(Namespace.PUB, doomed):
            self._failed(_in_pub(name), fault)

    def _remove_saves(self, folders: list[Folder], kept_on_record: Collection[Entry]) -> None:
        """Removes what is forgotten, inner before outer, and drops the records that are settled."""
        settled = [entry for folder in folders if folder.reason is not Reason.UNREFERENCED for entry in folder.records]
        self._drop_records(entry for entry in settled if entry not in kept_on_record)
        forgotten = [folder for folder in folders if folder.reason is Reason.UNREFERENCED]
        done = 0
        if forgotten:
            self._report.progress(done, len(forgotten))
        for _, level in groupby(forgotten, key=lambda folder: folder.path.count(b"/")):
            peers = list(level)
            gone: list[Entry] = []
            for folder, outcome in zip(peers, self._parallel(self._remove_save, peers), strict=True):
                if self._say(folder, outcome):
                    gone += folder.records
                done += 1
                self._report.progress(done, len(forgotten))
            self._drop_records(gone)

    def _say(self, folder: Folder, outcome: bool | SymlinkInPath | PermanentFault) -> bool:  # noqa: FBT001  (a result, handed on)
        """Reports what became of a save; returns whether the matter is closed."""
        if isinstance(outcome, PermanentFault):
            self._failed(folder.path, outcome)
            return False
        if isinstance(outcome, SymlinkInPath):
            self._report.left(folder.path, outcome.link)
        elif outcome:
            self._report.removed(folder.path)
        return True

    def _remove_save(self, folder: Folder) -> bool | SymlinkInPath | PermanentFault:
        """Whether the save was there, and is gone; or why it stays."""
        try:
            removal = self._store.remove_tree(folder.path, MARKERS)
            found = removal.found
            while removal.incomplete:
                removal = self._store.remove_tree(folder.path, ())
        except (SymlinkInPath, PermanentFault) as fault:
            return fault
        return found

    def _drop_records(self, settled: Iterable[Entry]) -> None:
        for name, fault in self._remove_names(Namespace.PRUNE, settled):
            self._failed(Namespace.PRUNE.value + b"/" + name, fault)

    def _remove_names(self, namespace: Namespace, doomed: Iterable[Entry]) -> Iterator[tuple[bytes, StoreFault]]:
        """Removes entries from an area; yields those that stay, with why."""
        names = (entry.name for entry in doomed)
        while batch := list(islice(names, _BATCH)):
            yield from self._store.remove_entries(namespace, batch).items()

    def _failed(self, path: bytes, fault: StoreFault) -> None:
        self._all_gone = False
        self._report.failed(path, fault)


def _in_pub(name: bytes) -> bytes:
    return Namespace.PUB.value + b"/" + name
