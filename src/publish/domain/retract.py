"""Takes back every publication of one save."""

from __future__ import annotations

from publish.domain.entry import Entry
from publish.domain.errors import SaveError
from publish.domain.listing import entries
from publish.domain.ports import Namespace, ParallelMap, Store
from publish.domain.removal import RETRACTED, Remover
from publish.domain.report import Report
from publish.domain.retention import plan

_NOT_PUBLISHED = "not a published save (publish log lists them)"


def retract(store: Store, report: Report, path: bytes) -> bool:
    """Removes the entries of `path`, the newest first. Leaves the save alone.

    Returns whether all of them are gone; one that is not was reported, and ends the work.
    Raises SaveError if it was never published, or while a removal of it is on record: a prune would remove the save.
    """
    published = [entry for entry in entries(store, Namespace.PUB) if entry.path == path]
    if any(record.path == path for record in entries(store, Namespace.PRUNE)):
        raise SaveError("the save is being removed (run prune, or retract it with -delete)", path)
    if not published:
        raise SaveError(_NOT_PUBLISHED, path)
    remover = Remover(store, report, map)
    for entry in sorted(published, reverse=True):
        if not remover.remove_entries([entry]):
            return False
        report.retracted(entry)
    _look_at_what_is_left(store, report)
    return True


def retract_and_delete(store: Store, report: Report, path: bytes, parallel: ParallelMap) -> bool:
    """Removes the entries of `path`, and then the save unless a remaining entry or a symbolic link protects it.

    Returns whether everything that had to go is gone; what is not was reported. If it is killed, the next call or
    the next prune finishes the work, because the records say that it was retracted. Raises SaveError for a save
    that was never published.
    """
    log = set(entries(store, Namespace.PUB))
    published = sorted((entry for entry in log if entry.path == path), reverse=True)
    recorded = {record for record in entries(store, Namespace.PRUNE) if record.path == path}
    if not published and not recorded:
        raise SaveError(_NOT_PUBLISHED, path)
    store.sync_entries(Namespace.PRUNE, [record.name for record in sorted(recorded)])
    remover = Remover(store, report, parallel)
    recorded |= remover.record([entry for entry in published if entry not in recorded], RETRACTED)
    for entry in published:
        if entry in recorded and remover.remove_entries([entry]):
            report.retracted(entry)
    if not published:
        store.sync_entries(Namespace.PUB, ())
    remaining = _look_at_what_is_left(store, report)
    planned = plan(recorded, remaining, store.real_path)
    for removal in planned:
        if removal.stays is not None:
            report.stays(path, removal.stays.value)
    remover.remove_saves(planned, remaining)
    return remover.all_gone


def _look_at_what_is_left(store: Store, report: Report) -> set[Entry]:
    remaining = set(entries(store, Namespace.PUB))
    if not remaining:
        report.nothing_left()
    return remaining
