"""The latest publication: the save from which a job resumes."""

from __future__ import annotations

from publish.domain.entry import Entry
from publish.domain.listing import entries
from publish.domain.ports import Namespace, Store


def latest(store: Store) -> Entry | None:
    """The entry with the greatest (epoch, step, name); None if nothing is published."""
    return max(entries(store, Namespace.PUB), default=None)
