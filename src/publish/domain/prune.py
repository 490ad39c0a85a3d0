"""Removes old publications, and then the saves that no publication refers to any more.

At every moment the saves that entries in `pub/` name are untouched, and a save whose entry is
gone is on record until it is gone too: whenever a prune is killed, the next one finishes its work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from publish.domain.entry import Entry
from publish.domain.errors import FormatError
from publish.domain.light_typing import NamedTuple
from publish.domain.listing import entries, printable_log
from publish.domain.ports import Namespace, ParallelMap, Store
from publish.domain.removal import RETRACTED, Remover
from publish.domain.report import Report
from publish.domain.retention import Policy, Reason, RetentionResult, apply_retention, plan


class Guards(NamedTuple):
    """What else keeps a publication, asked of the rest of the domain.

    `resumed(log)`: the entry that the newest execution resumed from and still needs, or None.
    `is_whole(path)`: whether a save is whole; None: prune does not verify.
    """

    resumed: Callable[[Collection[Entry]], Entry | None] = lambda _log: None
    is_whole: Callable[[bytes], bool] | None = None


NO_GUARDS = Guards()


def prune(store: Store, report: Report, policy: Policy, parallel: ParallelMap, guards: Guards = NO_GUARDS) -> bool:
    """Removes the entries that `policy` does not keep, then their saves.

    Returns whether everything that had to go is gone; what is not was reported. Raises, and leaves
    the work to the next prune, if the log does not parse, no save is whole, or the store gives up.
    """
    return _Prune(store, report, policy, parallel, guards).run()


def prune_dry_run(
    store: Store, report: Report, policy: Policy, parallel: ParallelMap, guards: Guards = NO_GUARDS
) -> None:
    """Reports what `prune` would remove, and why the rest stays. Changes nothing."""
    _Prune(store, report, policy, parallel, guards).explain()


class _Decision(NamedTuple):
    """The log and the removal records as they were read, and the log divided in three."""

    log: set[Entry]
    recorded: set[Entry]
    kept: dict[Entry, list[Reason]]
    removed: list[Entry]
    retracted: set[Entry]
    """What goes whatever the policy is."""


class _Prune:
    def __init__(self, store: Store, report: Report, policy: Policy, parallel: ParallelMap, guards: Guards) -> None:
        self._store = store
        self._report = report
        self._policy = policy
        self._parallel = parallel
        self._guards = guards
        self._remover = Remover(store, report, parallel)

    def run(self) -> bool:
        decided = self._decide()
        log, recorded = decided.log, decided.recorded
        # A prune that was killed may have written its records without making them durable (data.6).
        self._store.sync_entries(Namespace.PRUNE, [record.name for record in sorted(recorded)])
        removed = [*decided.removed, *decided.retracted]
        recorded |= self._remover.record([entry for entry in _to_record(removed, log) if entry not in recorded])
        # Read again: an execution that began meanwhile holds what it resumed from (prune.12).
        resumed = self._guards.resumed(log) if decided.removed else None
        removed = [entry for entry in removed if entry != resumed or entry in decided.retracted]
        unrecorded = set(_to_record(removed, log)) - recorded
        going = [entry for entry in removed if entry not in unrecorded]
        if going:
            self._remover.remove_entries(going)
        elif recorded:
            # What a killed prune only unlinked is made durable before its save goes (data.6).
            self._store.sync_entries(Namespace.PUB, ())
        # Read again: a publication that was made meanwhile protects its save (prune.2).
        remaining = set(entries(self._store, Namespace.PUB))
        if going and not remaining:
            # What was to stay was retracted meanwhile.
            self._report.nothing_left()
        self._remover.remove_saves(plan(recorded, remaining, self._store.real_path), remaining)
        self._warn(decided.removed, remaining)
        return self._remover.all_gone

    def explain(self) -> None:
        decided = self._decide()
        kept = decided.kept
        for entry, reasons in kept.items():
            self._report.kept(entry.path, [self._wording(reason) for reason in reasons])
        removals = {*decided.removed, *decided.retracted, *(decided.recorded - kept.keys())}
        for removal in plan(removals, kept, self._store.real_path):
            stays = removal.stays
            if stays is None and self._store.real_path(removal.path) not in (removal.path, None):
                stays = Reason.LINK
            if stays is not None:
                self._report.kept(removal.path, [self._wording(stays)])
            elif self._store.save_exists(removal.path):
                self._report.would_remove(removal.path)
        self._warn(decided.removed, set(kept))

    def _decide(self) -> _Decision:
        """Decides on what the store holds now, also if verifying saves took a while and something was retracted."""
        while True:
            # The log comes first: an entry in it that its publisher has to take back is on record by then.
            log = set(printable_log(self._store))
            recorded = set(entries(self._store, Namespace.PRUNE))
            retracted = self._retracted(log, recorded)
            kept, removed = self._apply(log - retracted, recorded)
            if self._guards.is_whole is None or kept.keys() <= set(entries(self._store, Namespace.PUB)):
                return _Decision(log, recorded, kept, removed, retracted)

    def _retracted(self, log: Collection[Entry], recorded: Iterable[Entry]) -> set[Entry]:
        """The entries whose path a `retract -delete` that was killed, or is under way, has on record."""
        paths = {entry.path for entry in log}
        doubtful = [record for record in recorded if record.path in paths]
        contents = self._parallel(lambda record: self._store.read_record(Namespace.PRUNE, record.name), doubtful)
        withdrawn = {record.path for record, content in zip(doubtful, contents, strict=True) if content == RETRACTED}
        return {entry for entry in log if entry.path in withdrawn}

    def _apply(self, log: Collection[Entry], recorded: Collection[Entry]) -> RetentionResult:
        is_whole = self._guards.is_whole
        whole: list[Entry] = []

        def check(entry: Entry) -> bool:
            if is_whole is not None and is_whole(entry.path):
                whole.append(entry)
                return True
            return False

        result = apply_retention(
            log, self._policy, recorded, self._guards.resumed(log), None if is_whole is None else check
        )
        if log and is_whole is not None and not whole:
            raise FormatError(f"prune: no published save is whole, so nothing is removed: {len(log)}")
        return result

    def _wording(self, reason: Reason) -> str:
        return reason.value.format(**self._policy._asdict())

    def _warn(self, removed: Collection[Entry], kept: Collection[Entry]) -> None:
        """Warns of kept saves that are gone (verify.4) and of a removed step above every kept one (prune.13)."""
        paths = sorted({entry.path for entry in kept})
        for path, exists in zip(paths, self._parallel(self._store.save_exists, paths), strict=True):
            if not exists:
                self._report.missing(path)
        highest = max((entry.step for entry in kept), default=-1)
        above = [entry for entry in removed if entry.step > highest]
        if above:
            self._report.removed_above(max(above, key=lambda entry: entry.step), highest)


def _to_record(removed: Iterable[Entry], log: Collection[Entry]) -> list[Entry]:
    """Those of `removed` whose path no entry that stays names.

    A save that stays needs no removal record, and its publisher must not find one: it would take its entry back.
    """
    removed = list(removed)
    staying = {entry.path for entry in set(log).difference(removed)}
    return [entry for entry in removed if entry.path not in staying]
