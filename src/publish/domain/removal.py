"""Removes entries and saves so that a kill at any point leaves the rest on record.

The order is: removal record, entry, save, record dropped. `prune` and `retract` decide what goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby, islice

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists, PermanentFault, StoreFault, SymlinkInPath
from publish.domain.ports import Namespace, ParallelMap, Store
from publish.domain.report import Report
from publish.domain.retention import PlannedRemoval

RETRACTED = b"retract\n"
"""The content of a removal record of `retract -delete`: the entry goes, whatever prune would keep (retract.1)."""

# One request removes at most this many names (AWS, DeleteObjects).
_BATCH_SIZE = 1000


class Remover:
    """Reports each thing that it removes, and each that it cannot remove."""

    def __init__(self, store: Store, report: Report, parallel: ParallelMap) -> None:
        self._store = store
        self._report = report
        self._parallel = parallel
        self.all_gone = True
        """Whether everything that had to go is gone."""

    def record(self, removed: list[Entry], content: bytes = b"") -> set[Entry]:
        """Writes removal records before the removals begin; returns the entries that have one."""
        recorded = set()
        outcomes = self._parallel(lambda entry: self._record_one(entry, content), removed)
        for entry, fault in zip(removed, outcomes, strict=True):
            if fault is None:
                recorded.add(entry)
            else:
                self._report_failure(_in_pub(entry.name), fault)
        return recorded

    def _record_one(self, entry: Entry, content: bytes) -> PermanentFault | None:
        try:
            self._store.create(Namespace.PRUNE, entry.name, content)
        except AlreadyExists:
            return None
        except PermanentFault as fault:
            return fault
        return None

    def remove_entries(self, removed: list[Entry]) -> bool:
        """Returns whether all of them are gone."""
        faults = list(self._remove_names(Namespace.PUB, removed))
        for name, fault in faults:
            self._report_failure(_in_pub(name), fault)
        return not faults

    def remove_saves(self, planned: list[PlannedRemoval], remaining: Collection[Entry]) -> None:
        """Removes saves, inner before outer, and drops the records that are settled (race.2)."""
        settled = [entry for removal in planned if removal.stays for entry in removal.records]
        self._drop_records(entry for entry in settled if entry not in remaining)
        going = [removal for removal in planned if not removal.stays]
        done = left = 0
        if going:
            self._report.progress(done, len(going))
        for _, level in groupby(going, key=lambda removal: removal.path.count(b"/")):
            same_depth = list(level)
            gone: list[Entry] = []
            for removal, outcome in zip(same_depth, self._parallel(self._remove_save, same_depth), strict=True):
                if self._report_outcome(removal, outcome):
                    gone += removal.records
                left += isinstance(outcome, SymlinkInPath)
                done += 1
                self._report.progress(done, len(going))
            self._drop_records(gone)
        if left > 1:
            self._report.left_behind_links(left)

    def _report_outcome(self, removal: PlannedRemoval, outcome: bool | SymlinkInPath | PermanentFault) -> bool:  # noqa: FBT001  (a result, handed on)
        """Returns whether the record can be dropped."""
        if isinstance(outcome, PermanentFault):
            self._report_failure(removal.path, outcome)
            return False
        if isinstance(outcome, SymlinkInPath):
            self._report.left_behind_link(removal.path, outcome.link)
        elif outcome:
            self._report.removed(removal.path)
        return True

    def _remove_save(self, planned: PlannedRemoval) -> bool | SymlinkInPath | PermanentFault:
        """Whether the save existed, and is gone; or why it stays."""
        from publish.domain.frameworks import MARKERS  # noqa: PLC0415  (start-up: most prunes remove nothing)

        try:
            removal = self._store.remove_tree(planned.path, MARKERS)
            found = removal.found
            while removal.incomplete:
                removal = self._store.remove_tree(planned.path, ())
        except (SymlinkInPath, PermanentFault) as fault:
            return fault
        return found

    def _drop_records(self, settled: Iterable[Entry]) -> None:
        for name, fault in self._remove_names(Namespace.PRUNE, settled):
            self._report_failure(Namespace.PRUNE.value + b"/" + name, fault)

    def _remove_names(self, namespace: Namespace, removed: Iterable[Entry]) -> Iterator[tuple[bytes, StoreFault]]:
        """Removes entries from a namespace; yields those that stay, with why."""
        names = (entry.name for entry in removed)
        while batch := list(islice(names, _BATCH_SIZE)):
            yield from self._store.remove_entries(namespace, batch).items()

    def _report_failure(self, path: bytes, fault: StoreFault) -> None:
        self.all_gone = False
        self._report.removal_failed(path, fault)


def _in_pub(name: bytes) -> bytes:
    return Namespace.PUB.value + b"/" + name
