"""begin.4: a record is made exclusively, with its content."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists, FormatError, PermanentFault
from publish.domain.ports import Namespace
from tests.support.directories import failing, open_store, recorded

ENTRY = Entry.of(1, 2, b"run/2")
NAME = ENTRY.name.decode()


def test_a_record_holds_what_its_maker_wrote(root: Path) -> None:
    store = open_store(root)
    store.create(Namespace.PRUNE, ENTRY.name, b"7 -\n")
    with pytest.raises(AlreadyExists):
        store.create(Namespace.PRUNE, ENTRY.name, b"8 -\n")
    assert store.read_record(Namespace.PRUNE, ENTRY.name) == b"7 -\n"
    assert store.read_record(Namespace.PRUNE, b"other") is None
    assert store.read_record(Namespace.PUB, b"other") is None
    assert os.listdir(root / ".publish/tmp") == []


def test_a_record_is_synced_before_it_has_its_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(root)
    with recorded(monkeypatch, "fsync", "link", "unlink") as calls:
        store.create(Namespace.PRUNE, ENTRY.name, b"content")
    effects = [call.split(" ")[0] for call in calls if not call.startswith("open")]
    assert effects == ["fsync", "link", "unlink", "fsync", "fsync", "fsync", "fsync"]
    assert [call for call in calls if call.startswith("fsync")][-3:] == ["fsync prune", "fsync .publish", "fsync ."]


def test_of_racing_makers_one_wins_and_all_read_its_content(root: Path) -> None:
    stores = [open_store(root) for _ in range(8)]

    def make(number: int) -> int | None:
        try:
            stores[number].create(Namespace.PRUNE, ENTRY.name, b"%d" % number * 1000)
        except AlreadyExists:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(make, range(8)) if number is not None]
    assert len(winners) == 1
    assert stores[0].read_record(Namespace.PRUNE, ENTRY.name) == b"%d" % winners[0] * 1000


@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_a_record_that_cannot_be_written_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    store = open_store(root)
    failing(monkeypatch, call, errno.ENOSPC)
    with pytest.raises(PermanentFault, match="No space left"):
        store.create(Namespace.PRUNE, ENTRY.name, b"content")
    monkeypatch.undo()
    assert store.read_record(Namespace.PRUNE, ENTRY.name) is None
    assert os.listdir(root / ".publish/tmp") == []


def test_a_link_that_is_answered_twice_is_the_makers_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On NFS, when the first reply is lost."""
    store = open_store(root)
    real = os.link

    def link(*arguments: bytes, **options: int) -> None:
        real(*arguments, **options)  # type: ignore[arg-type]
        real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", link)
    store.create(Namespace.PRUNE, ENTRY.name, b"mine")
    assert store.read_record(Namespace.PRUNE, ENTRY.name) == b"mine"


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/etc/passwd"), os.mkfifo])
def test_what_is_not_a_regular_file_is_not_a_record(root: Path, make: Callable[[Path], None]) -> None:
    """layout.4."""
    (root / Namespace.PRUNE.value.decode()).mkdir(parents=True)
    make(root / Namespace.PRUNE.value.decode() / NAME)
    with pytest.raises(FormatError, match=NAME):
        open_store(root).read_record(Namespace.PRUNE, ENTRY.name)
