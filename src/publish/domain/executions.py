"""The records of executions: which attempt claimed which epoch, and what each attempt began with (begin.4)."""

from __future__ import annotations

from collections.abc import Collection

from publish.domain.entry import EXECUTIONS, MAX_UINT64, Entry, has_control_characters, to_text
from publish.domain.errors import ConfigError, FormatError
from publish.domain.light_typing import NamedTuple
from publish.domain.listing import dated, entries, pages
from publish.domain.ports import Namespace, Store

_NO_ENTRY = b"-"
_EPOCH_DIGITS = 20


class Execution(NamedTuple):
    """What `begin` gave to an attempt, once and for all its nodes."""

    epoch: int
    attempt: bytes
    resume: Entry | None
    """The publication that it resumes from; None: it starts from step 0."""

    @property
    def folder(self) -> bytes:
        """Where it saves, relative to the root."""
        return EXECUTIONS + b"/" + self.attempt

    @property
    def record(self) -> bytes:
        """The content of the attempt's record."""
        return b"%d %s\n" % (self.epoch, self.resume.name if self.resume else _NO_ENTRY)


def epoch_name(epoch: int) -> bytes:
    """The name of an epoch's record."""
    return b"%020d" % epoch


def claimed_epochs(store: Store) -> list[int]:
    """Every epoch that an attempt has claimed, used or not. Raises FormatError for other names."""
    return [_parse_epoch_name(name) for name in pages(lambda token: store.list_entries(Namespace.EPOCH, token))]


def claimant(store: Store, epoch: int) -> bytes:
    """The attempt that claimed an epoch. Raises FormatError for a record that holds none."""
    name = epoch_name(epoch)
    attempt = (store.read_record(Namespace.EPOCH, name) or b"").removesuffix(b"\n")
    if attempt in (b"", b".", b"..") or b"/" in attempt or has_control_characters(attempt):
        raise _broken(Namespace.EPOCH, name, "not the name of an attempt")
    return attempt


def recorded(store: Store, attempt: bytes) -> Execution | None:
    """What an attempt began with; None: it has not begun. Raises FormatError for a record that does not parse."""
    content = store.read_record(Namespace.BEGIN, attempt)
    if content is None:
        return None
    epoch, space, entry = content.removesuffix(b"\n").partition(b" ")
    if not (space and epoch.isdigit() and len(epoch) <= _EPOCH_DIGITS and int(epoch) <= MAX_UINT64):
        raise _broken(Namespace.BEGIN, attempt, "not a line `<epoch> <entry or ->`")
    try:
        resume = None if entry == _NO_ENTRY else Entry.parse(entry)
    except FormatError:
        raise _broken(Namespace.BEGIN, attempt, "the entry does not parse") from None
    if resume is not None and has_control_characters(resume.path):
        raise _broken(Namespace.BEGIN, attempt, "the path of its entry has control characters")
    return Execution(int(epoch), attempt, resume)


def resumed_by_newest(store: Store, log: Collection[Entry]) -> Entry | None:
    """The publication that the newest execution resumed from; None once that execution has published (prune.12).

    An epoch that was claimed and not used belongs to no execution, so the one below it is looked at.
    """
    published = max((entry.epoch for entry in log), default=-1)
    for epoch in sorted(claimed_epochs(store), reverse=True):
        if epoch <= published:
            return None
        execution = recorded(store, claimant(store, epoch))
        if execution is not None and execution.epoch == epoch:
            return execution.resume
    return None


def check_not_published(store: Store, execution: Execution) -> None:
    """Raises ConfigError if saves of this execution are published: it ran before, and would write over them (run.8)."""
    inside = execution.folder + b"/"
    count = sum(
        entry.epoch == execution.epoch and entry.path.startswith(inside) for entry in entries(store, Namespace.PUB)
    )
    if count:
        raise ConfigError(
            f"this attempt has run already and published {count} of its saves, which a second start would write over; "
            f"give each start its own attempt (a requeued job: $SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}): "
            f"{to_text(execution.attempt)}"
        )


class Begun(NamedTuple):
    """An execution and when it began, in seconds since the epoch of Unix."""

    execution: Execution
    at: float


def all_executions(store: Store) -> list[Begun]:
    """Every execution that has begun, the oldest first."""
    attempts = dated(lambda token: store.list_dated(Namespace.BEGIN, token))
    begun = ((recorded(store, attempt.name), attempt.created) for attempt in attempts)
    return sorted(
        (Begun(execution, at) for execution, at in begun if execution is not None), key=lambda one: one.execution.epoch
    )


def _parse_epoch_name(name: bytes) -> int:
    if len(name) != _EPOCH_DIGITS or not name.isdigit() or int(name) > MAX_UINT64:
        folder = to_text(Namespace.EPOCH.value)
        raise FormatError(f"{folder}/: not the record of an epoch (move it out of the folder): {to_text(name)}")
    return int(name)


def _broken(namespace: Namespace, name: bytes, why: str) -> FormatError:
    return FormatError(
        f"{to_text(namespace.value)}/: broken record ({why}; move it out of the folder): {to_text(name)}"
    )
