"""The latest publication is found."""

from __future__ import annotations

from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain import listing
from publish.domain.candidate import find
from publish.domain.entry import Entry
from publish.domain.errors import FormatError, PermanentFault
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.listing import entries, saved_files
from publish.domain.log import read_log
from publish.domain.ports import DatedPage, FilesPage, Namespace, Page
from publish.domain.prune import prune
from publish.domain.resolve import latest
from publish.domain.retention import Policy
from publish.domain.root import Where
from tests.support import strategies
from tests.support.fakes import FakeReport, FakeStore
from tests.support.faults import Fault, FaultyStore
from tests.support.retrying import retrying


@given(st.sets(strategies.printable_entries, max_size=30), st.integers(1, 7))
def test_the_greatest_epoch_and_step_wins_over_any_number_of_pages(log: set[Entry], page_size: int) -> None:
    """layout.6, resolve.1."""
    store = FakeStore(page_size)
    store.names[Namespace.PUB] = {entry.name for entry in log}
    assert latest(store) == max(log, default=None, key=lambda entry: (entry.epoch, entry.step, entry.name))


class RepeatingStore(FakeStore):
    """Lists everything twice on a page, and the whole page again on the next."""

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        return _repeated(super().list_entries(namespace, None), token)

    def list_dated(self, namespace: Namespace, token: str | None) -> DatedPage:
        return _repeated(super().list_dated(namespace, None), token)

    def list_directories(self, path: bytes, token: str | None) -> Page:
        return _repeated(super().list_directories(path, None), token)

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        return _repeated(super().list_files(path, None), token)


AnyPage = TypeVar("AnyPage", Page, DatedPage, FilesPage)


def _repeated(page: AnyPage, token: str | None) -> AnyPage:
    return type(page)([*page[0], *page[0]], "again" if token is None else None)


def test_what_a_store_lists_twice_counts_once() -> None:
    """s3.17"""
    store = RepeatingStore()
    made = [Entry.of(1, step, b"exec/a/checkpoint-%d" % step) for step in (1, 2)]
    store.names[Namespace.PUB] = {entry.name for entry in made}
    for entry in made:
        store.files[entry.path + b"/trainer_state.json"] = b'{"global_step": %d}' % entry.step
    assert sorted(entries(store, Namespace.PUB)) == made
    assert [publication.entry for publication in read_log(store)] == made
    assert [file.path for file in saved_files(store, made[0].path)] == [b"trainer_state.json"]
    assert len(find(store, FRAMEWORKS["hf"].layouts_on(Where.DIRECTORY), b"exec/a")) == len(made)


def test_a_listing_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """s3.15: each page has another token, and other names"""
    monkeypatch.setattr(listing, "MAX_NAMES", 1_000)

    def fetch(token: str | None) -> Page:
        number = int(token or "0")
        return Page([b"%d-%d" % (number, name) for name in range(100)], str(number + 1))

    with pytest.raises(
        PermanentFault,
        match=r"the listing has not ended after so many names \(check the endpoint and the prefix\): 1100$",
    ):
        list(listing.pages(fetch))


def test_many_names_on_one_page_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """s3.15: a directory has one page, which is in memory already"""
    monkeypatch.setattr(listing, "MAX_NAMES", 1_000)
    names = [b"%d" % name for name in range(2_000)]
    assert list(listing.pages(lambda _token: Page(names, None))) == names


def test_an_unrecognised_entry_on_any_page_is_an_error() -> None:
    """layout.4, resolve.3."""
    store = FakeStore(page_size=1)
    store.names[Namespace.PUB] = {b"zzz", Entry.of(1, 1, b"a").name}
    with pytest.raises(FormatError, match="zzz"):
        latest(store)


def test_removal_records_are_not_read() -> None:
    """layout.9: only prune reads them."""
    store = FakeStore()
    store.names[Namespace.PRUNE] = {Entry.of(9, 9, b"a").name, b"foreign"}
    assert latest(store) is None


@given(st.lists(st.sampled_from([Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.NONE]), max_size=6))
def test_lost_replies_never_hide_a_publication(schedule: list[Fault]) -> None:
    """s3.8, resolve.3."""
    store = FakeStore(page_size=1)
    entries = [Entry.of(epoch, 1, b"a") for epoch in range(3)]
    store.names[Namespace.PUB] = {entry.name for entry in entries}
    assert latest(retrying(FaultyStore(store, schedule))) == entries[-1]


def test_an_entry_whose_path_has_control_characters_is_named_and_nothing_is_answered() -> None:
    """layout.8: printed as it is, it would be two lines."""
    store = FakeStore()
    store.names[Namespace.PUB] = {Entry.of(1, 1, b"run/1").name, Entry.of(1, 2, b"run/2\n/etc").name}
    with pytest.raises(FormatError, match=r"control characters .*run/2\n/etc"):
        latest(store)
    with pytest.raises(FormatError, match="control characters"):
        prune(store, FakeReport(), Policy(1), map)
    assert len(store.names[Namespace.PUB]) == 2


def test_the_files_of_a_save_are_read_from_all_pages() -> None:
    """verify.7"""
    store = FakeStore(page_size=2)
    store.files = {b"run/%d" % number: b"" for number in range(5)}
    assert sorted(file.path for file in saved_files(store, b"run")) == [b"%d" % number for number in range(5)]
