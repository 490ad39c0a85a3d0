"""The publication log as people and programs read it."""

from __future__ import annotations

from publish.domain.entry import Entry
from publish.domain.light_typing import NamedTuple
from publish.domain.listing import dated, parsed
from publish.domain.ports import Namespace, Store


class Publication(NamedTuple):
    """An entry and when it was created, in seconds since the epoch of Unix."""

    entry: Entry
    created: float


def read_log(store: Store) -> list[Publication]:
    """Every publication, the latest last (layout.6). Raises FormatError for names that are no entries."""
    names = dated(lambda token: store.list_dated(Namespace.PUB, token))
    return sorted(parsed(Namespace.PUB, names, lambda one: Publication(Entry.parse(one.name), one.created)))
