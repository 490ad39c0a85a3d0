"""Pruning: entries first, then the saves that no entry names any more.

At every moment the saves that entries in `pub/` name are untouched, and a save whose entry is
gone has a removal record in `prune/` until it is gone too: if a prune is killed at any point,
the next one finishes its work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby, islice

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists, PermanentFault, StoreFault, SymlinkInPath
from publish.domain.frameworks import MARKERS
from publish.domain.listing import entries
from publish.domain.ports import Namespace, ParallelMap, Report, Store
from publish.domain.retention import PlannedRemoval, Reason, apply_retention, plan

# At most this many names in one request (AWS, DeleteObjects).
_BATCH_SIZE = 1000


def prune(store: Store, report: Report, keep: int, parallel: ParallelMap) -> bool:
    """Keeps the latest `keep` (at least 1) entries; removes the others, then the saves that they named.

    Returns whether everything that had to go is gone; what is not was reported. Raises, leaving
    the rest to the next prune, if the log does not parse or the store gives up.
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
        to_remove = apply_retention(entries(self._store, Namespace.PUB), keep).removed
        recorded |= self._record([entry for entry in to_remove if entry not in recorded])
        self._remove_entries([entry for entry in to_remove if entry in recorded])
        # Read again: a publication that was made meanwhile protects its save (prune.2).
        remaining = set(entries(self._store, Namespace.PUB))
        self._remove_saves(plan(recorded, remaining), keep_records=remaining.intersection(to_remove))
        return self._all_gone

    def _record(self, to_remove: list[Entry]) -> set[Entry]:
        """Writes the removal records; returns the entries that have one."""
        recorded = set()
        for entry, fault in zip(to_remove, self._parallel(self._record_one, to_remove), strict=True):
            if fault is None:
                recorded.add(entry)
            else:
                self._report_failure(_in_pub(entry.name), fault)
        return recorded

    def _record_one(self, entry: Entry) -> PermanentFault | None:
        try:
            self._store.create(Namespace.PRUNE, entry.name)
        except AlreadyExists:
            return None
        except PermanentFault as fault:
            return fault
        return None

    def _remove_entries(self, to_remove: list[Entry]) -> None:
        for name, fault in self._remove_names(Namespace.PUB, to_remove):
            self._report_failure(_in_pub(name), fault)

    def _remove_saves(self, planned: list[PlannedRemoval], keep_records: Collection[Entry]) -> None:
        """Removes unreferenced saves, inner before outer, and drops the records that are no longer needed."""
        staying = [removal for removal in planned if removal.reason is not Reason.UNREFERENCED]
        self._drop_records(entry for removal in staying for entry in removal.records if entry not in keep_records)
        unreferenced = [removal for removal in planned if removal.reason is Reason.UNREFERENCED]
        done = 0
        if unreferenced:
            self._report.progress(done, len(unreferenced))
        for _, level in groupby(unreferenced, key=lambda removal: removal.path.count(b"/")):
            same_depth = list(level)
            finished: list[Entry] = []
            for removal, outcome in zip(same_depth, self._parallel(self._remove_save, same_depth), strict=True):
                if self._report_outcome(removal, outcome):
                    finished += removal.records
                done += 1
                self._report.progress(done, len(unreferenced))
            self._drop_records(finished)

    def _report_outcome(self, removal: PlannedRemoval, outcome: bool | SymlinkInPath | PermanentFault) -> bool:  # noqa: FBT001  (a result, handed on)
        """Reports what happened to a save; returns whether its records can be dropped."""
        if isinstance(outcome, PermanentFault):
            self._report_failure(removal.path, outcome)
            return False
        if isinstance(outcome, SymlinkInPath):
            self._report.left(removal.path, outcome.link)
        elif outcome:
            self._report.removed(removal.path)
        return True

    def _remove_save(self, planned: PlannedRemoval) -> bool | SymlinkInPath | PermanentFault:
        """Whether the save existed and is now gone; or why it stays."""
        try:
            removal = self._store.remove_tree(planned.path, MARKERS)
            found = removal.found
            while removal.incomplete:
                removal = self._store.remove_tree(planned.path, ())
        except (SymlinkInPath, PermanentFault) as fault:
            return fault
        return found

    def _drop_records(self, finished: Iterable[Entry]) -> None:
        for name, fault in self._remove_names(Namespace.PRUNE, finished):
            self._report_failure(Namespace.PRUNE.value + b"/" + name, fault)

    def _remove_names(self, namespace: Namespace, to_remove: Iterable[Entry]) -> Iterator[tuple[bytes, StoreFault]]:
        """Removes names from a namespace; yields those that stay, each with the reason."""
        names = (entry.name for entry in to_remove)
        while batch := list(islice(names, _BATCH_SIZE)):
            yield from self._store.remove_entries(namespace, batch).items()

    def _report_failure(self, path: bytes, fault: StoreFault) -> None:
        self._all_gone = False
        self._report.failed(path, fault)


def _in_pub(name: bytes) -> bytes:
    return Namespace.PUB.value + b"/" + name
