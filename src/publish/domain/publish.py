"""Adding one publication to the log."""

from __future__ import annotations

from publish.domain.entry import Entry, to_text, validate_save_path
from publish.domain.errors import AlreadyExists, ConfigError
from publish.domain.ports import Namespace, Report, Store


def publish_entry(store: Store, report: Report, entry: Entry) -> None:
    """Creates the entry and reports it as published, or as already published if it existed.

    A put that is retried after a lost reply and then finds the name taken cannot know who
    created it; either way the publication exists, so it counts as already published (S3).
    """
    try:
        store.create(Namespace.PUB, entry.name)
    except AlreadyExists:
        report.already(entry)
    else:
        report.published(entry)


def check_publishable(store: Store, entry: Entry) -> None:
    """Raises ConfigError for a save that cannot be published, before anything is written."""
    validate_save_path(entry.path)
    store.check_name_length(entry.name)


def publish_save(store: Store, report: Report, entry: Entry) -> None:
    """Publishes one save that the user declares complete. Raises ConfigError if it does not exist."""
    check_publishable(store, entry)
    if not store.save_exists(entry.path):
        raise ConfigError(f"save not found below the root: {to_text(entry.path)}")
    publish_entry(store, report, entry)
