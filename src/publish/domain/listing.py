"""Paged listings as plain iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from publish.domain.entry import Entry, to_text
from publish.domain.errors import FormatError
from publish.domain.ports import Namespace, Page, SavedFile, Store


def pages(fetch: Callable[[str | None], Page]) -> Iterator[bytes]:
    """The names on all pages; `fetch` returns the page for a token, None being the first."""
    token: str | None = None
    while True:
        page = fetch(token)
        yield from page.names
        token = page.next_token
        if token is None:
            return


def saved_files(store: Store, path: bytes) -> Iterator[SavedFile]:
    """The files on all pages of `Store.list_files`."""
    token: str | None = None
    while True:
        page = store.list_files(path, token)
        yield from page.files
        token = page.next_token
        if token is None:
            return


def entries(store: Store, namespace: Namespace) -> Iterator[Entry]:
    """Every entry of a namespace, in no order. Raises FormatError, after all are read, for other names."""
    folder = to_text(namespace.value)
    unrecognised = []
    for name in pages(lambda token: store.list_entries(namespace, token)):
        try:
            yield Entry.parse(name)
        except FormatError as fault:
            unrecognised.append(str(fault))
    if unrecognised:
        first, *more = (FormatError(f"{folder}/: {fault}") for fault in sorted(unrecognised))
        first.more = more
        raise first
