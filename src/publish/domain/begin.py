"""Gives one execution its epoch and the save that it resumes from, once for all of its nodes.

There is no lock. A record is created exclusively with its content and never changes, so whichever
process creates an attempt's record decides for all of them, and every other process reads it. The
order of the steps is what holds against crashes and against a prune at the same time
(docs/decisions/0014-begin-without-a-lock.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from publish.domain.entry import EXECUTIONS, MAX_UINT64, Entry, to_text
from publish.domain.errors import AlreadyExists, ConfigError, SaveError
from publish.domain.executions import Execution, claimant, claimed_epochs, epoch_name, recorded
from publish.domain.light_typing import NamedTuple
from publish.domain.listing import entries, printable_log
from publish.domain.ports import Namespace, Store
from publish.domain.publish import check_publishable

_NO_EPOCH, _FIRST_EPOCH = -1, 1
_SHORTEST_SAVE = b"0"

Choose = Callable[[Collection[Entry]], Entry | None]
"""The publication to resume from, of those in the log; raises ConfigError if none will do."""


class BeginOptions(NamedTuple):
    """What the caller chooses itself; None: `begin` decides."""

    epoch: int | None = None
    save: bytes | None = None
    """The path of the published save to go back to."""


def latest_of(log: Collection[Entry]) -> Entry | None:
    """The latest publication."""
    return max(log, default=None)


def begin(store: Store, attempt: bytes, options: BeginOptions, choose: Choose = latest_of) -> Execution:
    """The same answer for every call with this attempt, whatever else happens at the same time (begin.5).

    `choose` counts only in the call that decides for the attempt. If `options` names a save, it has no other choice.
    Raises ConfigError if an option cannot be met, the save to resume from is gone or about to go, or the attempt's name
    is so long that none of its saves could be published (layout.8).
    """
    check_publishable(store, Entry.of(0, 0, b"/".join((EXECUTIONS, attempt, _SHORTEST_SAVE))))
    execution = recorded(store, attempt) or _decide(store, attempt, options, choose)
    _check_options(execution, options)
    _check_resumable(store, execution)
    return execution


def _decide(store: Store, attempt: bytes, options: BeginOptions, choose: Choose) -> Execution:
    try:
        proposed = _propose(store, attempt, options, choose)
        store.create(Namespace.BEGIN, attempt, proposed.record)
    except (AlreadyExists, ConfigError):
        # Another node was faster. Its execution may even have published and pruned since.
        execution = recorded(store, attempt)
        if execution is None:
            raise
        return execution
    return proposed


def _propose(store: Store, attempt: bytes, options: BeginOptions, choose: Choose) -> Execution:
    log, epoch = _claim(store, attempt, options.epoch)
    resume = choose(log if options.save is None else {_publication_of(log, options.save)})
    if resume is not None and not store.save_exists(resume.path):
        raise SaveError("the save to resume from is gone (retract it, or go back to another with -from)", resume.path)
    return Execution(epoch, attempt, resume)


def _claim(store: Store, attempt: bytes, asked: int | None) -> tuple[set[Entry], int]:
    """Claims an epoch above all others; returns the log as it was after that, and the epoch."""
    claimed = max(claimed_epochs(store), default=_NO_EPOCH)
    published = _highest(printable_log(store))
    while True:
        if asked is None:
            epoch = _claim_above(store, attempt, max(claimed, published, _FIRST_EPOCH - 1))
        else:
            epoch = _claim_asked(store, attempt, asked, max(claimed - 1, published))
        # Read again: what was published before the epoch was claimed must be seen.
        log = set(printable_log(store))
        published = _highest(log)
        if epoch > published:
            return log, epoch


def _claim_above(store: Store, attempt: bytes, highest: int) -> int:
    """Claims the lowest epoch above `highest` that no other attempt has."""
    for epoch in range(highest + 1, MAX_UINT64 + 1):
        if _try_claim(store, attempt, epoch):
            return epoch
    raise ConfigError(
        "there is no epoch above the highest one in use (if that one is a mistake, retract the publications that have "
        f"it and remove its record in .publish/epoch/): {highest}"
    )


def _claim_asked(store: Store, attempt: bytes, asked: int, highest: int) -> int:
    """Claims the epoch that the scheduler gave, which is above `highest`."""
    if asked <= highest:
        raise _unusable_epoch("an earlier execution has this epoch or a higher one", asked)
    if not _try_claim(store, attempt, asked):
        raise _unusable_epoch("another attempt has this epoch", asked)
    return asked


def _try_claim(store: Store, attempt: bytes, epoch: int) -> bool:
    """Claims the epoch; returns whether this attempt has it, on whichever node."""
    try:
        store.create(Namespace.EPOCH, epoch_name(epoch), attempt)
    except AlreadyExists:
        return claimant(store, epoch) == attempt
    return True


def _highest(log: Collection[Entry]) -> int:
    return max((entry.epoch for entry in log), default=_NO_EPOCH)


def _publication_of(log: Collection[Entry], save: bytes) -> Entry:
    entry = max((entry for entry in log if entry.path == save), default=None)
    if entry is None:
        raise SaveError("-from: this save is not published (publish log lists those that are)", save)
    return entry


def _check_options(execution: Execution, options: BeginOptions) -> None:
    """Raises ConfigError for an option that contradicts the attempt's record."""
    resume = None if execution.resume is None else execution.resume.path
    if options.epoch not in (None, execution.epoch):
        raise _begun_already(f"with epoch {execution.epoch}, not {options.epoch}", execution)
    if options.save not in (None, resume):
        was = "the start" if resume is None else to_text(resume)
        raise _begun_already(f"from {was}, not {to_text(options.save or b'')}", execution)


def _check_resumable(store: Store, execution: Execution) -> None:
    """Raises SaveError if the save is being removed, or is gone.

    The order matters: a prune drops its record only after the save is gone.
    """
    if execution.resume is None:
        return
    path = execution.resume.path
    advice = "begin again as another attempt, or go back to another save with -from"
    if any(record.path == path for record in entries(store, Namespace.PRUNE)):
        finish = "finish that with prune or with retract -delete"
        raise SaveError(f"the save to resume from is being removed ({finish}, then {advice})", path)
    if not store.save_exists(path):
        raise SaveError(f"the save to resume from is gone ({advice}, or retract it)", path)


def _begun_already(how: str, execution: Execution) -> ConfigError:
    return ConfigError(
        f"this attempt has begun already, {how}; give each execution its own attempt "
        f"(a requeued job: $SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}): {to_text(execution.attempt)}"
    )


def _unusable_epoch(why: str, epoch: int) -> ConfigError:
    advice = "the scheduler must raise it with every execution, or give none and get a free one"
    return ConfigError(f"{why}; {advice}: {epoch}")
