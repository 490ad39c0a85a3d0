"""Adding one publication to the log."""

from __future__ import annotations

from publish.domain.entry import Entry, refuse_unpublishable, spell
from publish.domain.errors import AlreadyThere, Misconfigured
from publish.domain.ports import Area, Report
from publish.domain.requests import Requests


def append(ask: Requests, report: Report, entry: Entry) -> None:
    """Makes the entry and says so, or says that it was there.

    A put that was sent again after a lost reply and then finds the name taken cannot know whose
    it is; either way the publication stands, so it counts as already there (S3).
    """
    try:
        ask(f"create pub/{spell(entry.name)}", lambda store: store.create(Area.PUB, entry.name))
    except AlreadyThere:
        report.already(entry)
    else:
        report.published(entry)


def check(ask: Requests, entry: Entry) -> None:
    """Raises Misconfigured for a save that may not be published, before anything is written."""
    refuse_unpublishable(entry.path)
    ask("check the name", lambda store: store.refuse_oversized(entry.name))


def publish_save(ask: Requests, report: Report, entry: Entry) -> None:
    """Publishes one save that the user says is complete. Raises Misconfigured if it is not there."""
    check(ask, entry)
    if not ask(f"look for {spell(entry.path)}", lambda store: store.has_save(entry.path)):
        raise Misconfigured(f"there is no save to publish: {spell(entry.path)}")
    append(ask, report, entry)
