"""The latest publication: the answer to where a job resumes."""

from __future__ import annotations

from publish.domain.entry import Entry
from publish.domain.ports import Namespace
from publish.domain.retrying_store import Requests, entries


def latest(ask: Requests) -> Entry | None:
    """The entry with the greatest (epoch, step), of equals the one with the greatest name."""
    return max(entries(ask, Namespace.PUB), default=None)
