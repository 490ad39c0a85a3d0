"""Adding one publication to the log."""

from __future__ import annotations

from publish.domain.entry import Entry, to_text, validate_save_path
from publish.domain.errors import AlreadyExists, ConfigError
from publish.domain.ports import Namespace, Report
from publish.domain.retrying_store import Requests


def append(ask: Requests, report: Report, entry: Entry) -> None:
    """Makes the entry and says so, or says that it was there.

    A put that was sent again after a lost reply and then finds the name taken cannot know whose
    it is; either way the publication stands, so it counts as already there (S3).
    """
    try:
        ask(f"create pub/{to_text(entry.name)}", lambda store: store.create(Namespace.PUB, entry.name))
    except AlreadyExists:
        report.already(entry)
    else:
        report.published(entry)


def check(ask: Requests, entry: Entry) -> None:
    """Raises ConfigError for a save that may not be published, before anything is written."""
    validate_save_path(entry.path)
    ask("check the name", lambda store: store.check_name_length(entry.name))


def publish_save(ask: Requests, report: Report, entry: Entry) -> None:
    """Publishes one save that the user says is complete. Raises ConfigError if it is not there."""
    check(ask, entry)
    if not ask(f"look for {to_text(entry.path)}", lambda store: store.save_exists(entry.path)):
        raise ConfigError(f"there is no save to publish: {to_text(entry.path)}")
    append(ask, report, entry)
