"""Adding one publication to the log."""

from __future__ import annotations

from contextlib import suppress

from publish.domain.entry import EXECUTIONS, Entry, to_text, validate_save_path
from publish.domain.errors import AlreadyExists, ConfigError, SaveError
from publish.domain.listing import entries
from publish.domain.ports import Namespace, Store
from publish.domain.report import Report


class SaveIsBeingRemoved(SaveError):
    """A prune removes the save at the same time, so it cannot be published now."""


def publish_entry(store: Store, report: Report, entry: Entry) -> None:
    """Creates the entry and reports it as published, or as already published if it existed.

    A put that is retried after a lost reply and then finds the name taken cannot know who
    created it. The publication exists, so it counts as already published (s3.9), but only after
    the same check as for an entry that was surely created here (race.1).
    Raises SaveIsBeingRemoved with the entry taken back.
    """
    try:
        store.create(Namespace.PUB, entry.name)
    except AlreadyExists as taken:
        if taken.perhaps_ours:
            _check_not_removed(store, entry)
        report.already_published(entry)
    else:
        _check_not_removed(store, entry)
        report.published(entry)


def _check_not_removed(store: Store, entry: Entry) -> None:
    """Takes the entry back if its save is being removed or is gone (race.1).

    The order matters: a prune drops its record only after the save is gone. The entry's own removal record comes
    before its removal, as in a prune, so the next prune removes a save that no entry names any more.
    """
    recorded = any(record.path == entry.path for record in entries(store, Namespace.PRUNE))
    exists = store.save_exists(entry.path)
    if exists and not recorded:
        return
    with suppress(AlreadyExists):
        store.create(Namespace.PRUNE, entry.name)
    faults = store.remove_entries(Namespace.PUB, [entry.name])
    for fault in faults.values():
        raise fault
    advice = "run prune, then publish it again" if exists else "it is gone"
    raise SaveIsBeingRemoved(f"the save is being removed ({advice})", entry.path)


def check_publishable(store: Store, entry: Entry) -> None:
    """Raises ConfigError for a save that cannot be published, before anything is written."""
    validate_save_path(entry.path)
    if entry.path == EXECUTIONS:
        raise SaveError("this folder holds the saves of every execution and is not a save", entry.path)
    try:
        store.check_name_length(entry.name)
    except ConfigError as error:
        raise ConfigError(f"{error}: {to_text(entry.path)}") from error


def publish_save(store: Store, report: Report, entry: Entry, *, sync: bool = True) -> None:
    """Publishes one save that the user declares complete. Raises SaveError if it does not exist.

    `sync`: make the save's own data durable first (data.1).
    """
    check_publishable(store, entry)
    _require_save(store, entry)
    if sync:
        store.sync_save(entry.path)
        _require_save(store, entry)
    publish_entry(store, report, entry)


def _require_save(store: Store, entry: Entry) -> None:
    if not store.save_exists(entry.path):
        raise SaveError("save not found below the root", entry.path)
