"""The latest publication: the save from which a job resumes."""

from __future__ import annotations

from publish.domain.entry import Entry
from publish.domain.listing import printable_log
from publish.domain.ports import Store


def latest(store: Store) -> Entry | None:
    """The entry with the greatest (epoch, step, name); None if nothing is published."""
    return max(printable_log(store), default=None)
