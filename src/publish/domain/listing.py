"""Paged listings as plain iterators. A name that a store lists twice is one name (s3.17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from publish.domain.entry import Entry, has_control_characters, to_text
from publish.domain.errors import FormatError, PermanentFault, first_with_rest
from publish.domain.light_typing import TypeVar
from publish.domain.ports import DatedName, DatedPage, Namespace, Page, SavedFile, Store

Item = TypeVar("Item")
Out = TypeVar("Out")

MAX_NAMES = 1_000_000
"""A listing of several pages has fewer. All of them are in memory."""

# Seconds since the epoch of Unix (RFC 3339, section 5.6: a year has four digits).
_YEAR_1, _END_OF_YEAR_9999 = -62_135_596_800.0, 253_402_300_799.0


def pages(fetch: Callable[[str | None], Page]) -> Iterator[bytes]:
    """The names on all pages; `fetch` returns the page for a token, None being the first."""
    return _each_once(fetch, bytes)


def dated(fetch: Callable[[str | None], DatedPage]) -> Iterator[DatedName]:
    """The names on all pages, with their times. A time that RFC 3339 cannot write is moved to the nearest that it can.

    A filesystem may hold any 64-bit number of seconds, and any program may have set it.
    """
    for name, created in _each_once(fetch, lambda item: item.name):
        yield DatedName(name, min(max(created, _YEAR_1), _END_OF_YEAR_9999))


def saved_files(store: Store, path: bytes) -> Iterator[SavedFile]:
    """The files on all pages of `Store.list_files`."""
    return _each_once(lambda token: store.list_files(path, token), lambda file: file.path)


def _each_once(
    fetch: Callable[[str | None], tuple[Sequence[Item], str | None]], name_of: Callable[[Item], bytes]
) -> Iterator[Item]:
    seen: set[bytes] = set()
    token: str | None = None
    while True:
        items, token = fetch(token)
        for item in items:
            name = name_of(item)
            if name not in seen:
                seen.add(name)
                yield item
        if token is None:
            return
        if len(seen) > MAX_NAMES:
            raise PermanentFault(
                f"the listing has not ended after so many names (check the endpoint and the prefix): {len(seen)}"
            )


def printable_log(store: Store) -> list[Entry]:
    """Every entry of `pub/`, for verbs that print paths to stdout as they are or give them to a program.

    Raises FormatError also for an entry that another program wrote for a path with control characters: a line of it
    would read as another path, or drive a terminal (layout.8).
    """
    log = list(entries(store, Namespace.PUB))
    for entry in log:
        if has_control_characters(entry.path):
            raise FormatError(f"pub/: the path of an entry has control characters (retract it): {to_text(entry.path)}")
    return log


def entries(store: Store, namespace: Namespace) -> Iterator[Entry]:
    """Every entry of a namespace, in no order. Raises FormatError, after all are read, for other names."""
    return parsed(namespace, pages(lambda token: store.list_entries(namespace, token)), Entry.parse)


def parsed(namespace: Namespace, items: Iterable[Item], parse: Callable[[Item], Out]) -> Iterator[Out]:
    """What `parse` makes of each item. Raises FormatError, after all are read, for those for which it does."""
    unrecognised = []
    for item in items:
        try:
            yield parse(item)
        except FormatError as fault:
            unrecognised.append(str(fault))
    if unrecognised:
        raise first_with_rest([FormatError(f"{to_text(namespace.value)}/: {fault}") for fault in sorted(unrecognised)])
