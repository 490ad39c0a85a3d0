"""The Store port's contract on saves, which every store keeps (publish/domain/ports.py)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from publish.domain.completeness import why_incomplete
from publish.domain.errors import FormatError
from publish.domain.frameworks import MARKERS
from publish.domain.layout import Check, Layout, Need, Save
from publish.domain.listing import pages
from publish.domain.ports import SavedFile, Store
from tests.support.stores import FreshRoot


def folders(store: Store, path: bytes) -> list[bytes]:
    return sorted(pages(lambda token: store.list_directories(path, token)))


def remove_all(store: Store, path: bytes) -> bool:
    """Whether anything was found."""
    removal = store.remove_tree(path, MARKERS)
    found = removal.found
    while removal.incomplete:
        removal = store.remove_tree(path, ())
    return found


def test_a_save_is_a_file_or_a_folder_that_is_not_empty(fresh_root: FreshRoot, store: Store) -> None:
    """publish.2."""
    fresh_root.fill("run/checkpoint-1/a/b", "run/file.ckpt", "run/checkpoint-10/x")
    assert store.save_exists(b"run/checkpoint-1")
    assert store.save_exists(b"run/file.ckpt")
    assert not store.save_exists(b"run/checkpoint-2")
    assert not store.save_exists(b"run/check")
    assert not store.save_exists(b"run/file.ckpt/x")


def test_folders_are_listed_by_their_names(fresh_root: FreshRoot, store: Store) -> None:
    """watch.1."""
    fresh_root.fill("run/checkpoint-1/a", "run/checkpoint-10/a/b", "run/file", "other/x", "runner/x")
    assert folders(store, b"run") == [b"checkpoint-1", b"checkpoint-10"]
    assert folders(store, b"") == [b"other", b"run", b"runner"]
    assert folders(store, b"not/there") == []


def test_more_folders_than_a_page_are_listed(fresh_root: FreshRoot, store: Store) -> None:
    """watch.1."""
    fresh_root.fill(*(f"run/checkpoint-{step}/x" for step in range(1003)))
    assert len(set(folders(store, b"run"))) == 1003


def test_the_size_of_an_empty_file_differs_from_a_missing_one(fresh_root: FreshRoot, store: Store) -> None:
    """watch.2."""
    fresh_root.fill("s/.metadata", body=b"")
    fresh_root.fill("s/x/y", body=b"abc")
    assert store.size(b"s/.metadata") == 0
    assert store.size(b"s/x/y") == 3
    assert store.size(b"s/x") is None
    assert store.exists(b"s/.metadata")
    assert store.exists(b"s/x")
    assert not store.exists(b"s/z")
    assert not store.exists(b"s/.meta")
    assert store.size(b"s/z") is None
    assert store.size(b"t/z") is None


def test_a_folder_that_a_complete_save_does_not_have_keeps_it_incomplete(fresh_root: FreshRoot, store: Store) -> None:
    """watch.2: a forbidden name may be that of a folder."""
    layout = Layout(("s-N",), rb"s-([0-9]+)", (Need(b"done", Check.ANY),), forbids=(b"writing",))
    fresh_root.fill("s-1/done", "s-2/done", "s-2/writing/rank-0")
    assert why_incomplete(store, layout, Save(1, b"s-1")) is None
    assert why_incomplete(store, layout, Save(2, b"s-2")) == "writing is there"


@pytest.mark.parametrize("body", [b"", b"text", b"long" * 1_000_000])
def test_a_file_is_read_whole(fresh_root: FreshRoot, store: Store, body: bytes) -> None:
    """watch.4."""
    fresh_root.fill("s/trainer_state.json", body=body)
    assert store.read(b"s/trainer_state.json", len(body) + 1) == body
    assert store.read(b"s/other", 10) is None
    assert store.read(b"t/other", 10) is None


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_no_more_of_a_file_is_read_than_the_limit(fresh_root: FreshRoot, store: Store, limit: int) -> None:
    """watch.4."""
    fresh_root.fill("s/trainer_state.json", body=b"12345")
    assert store.read(b"s/trainer_state.json", limit) == b"12345"[:limit]


def test_removing_a_save_leaves_saves_whose_names_begin_alike(fresh_root: FreshRoot, store: Store) -> None:
    """prune.3: removal is idempotent."""
    fresh_root.fill("run/checkpoint-1/a", "run/checkpoint-1/b/c", "run/checkpoint-10/a", "run/checkpoint-1x")
    assert remove_all(store, b"run/checkpoint-1")
    assert fresh_root.paths() == ["run/checkpoint-10/a", "run/checkpoint-1x"]
    assert not remove_all(store, b"run/checkpoint-1")
    assert not store.save_exists(b"run/checkpoint-1")


def test_a_save_that_is_a_file_is_removed(fresh_root: FreshRoot, store: Store) -> None:
    """prune.3."""
    fresh_root.fill("run/1.ckpt", "run/1.ckptx")
    assert remove_all(store, b"run/1.ckpt")
    assert fresh_root.paths() == ["run/1.ckptx"]


def test_a_save_of_more_than_a_page_is_removed(fresh_root: FreshRoot, store: Store) -> None:
    """prune.3."""
    fresh_root.fill(*(f"run/1/{number:04}" for number in range(1010)), "run/1/trainer_state.json", "run/2/x")
    assert remove_all(store, b"run/1")
    assert fresh_root.paths() == ["run/2/x"]


def test_two_concurrent_removals_leave_nothing(fresh_root: FreshRoot) -> None:
    """prune.8."""
    fresh_root.fill(*(f"run/1/{number:03}/x" for number in range(150)))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda store: remove_all(store, b"run/1"), [fresh_root.store(), fresh_root.store()]))
    assert fresh_root.paths() == []


def files(store: Store, path: bytes) -> dict[bytes, tuple[int, str]]:
    found: list[SavedFile] = []
    token: str | None = None
    while True:
        page = store.list_files(path, token)
        found += page.files
        token = page.next_token
        if token is None:
            assert len({file.path for file in found}) == len(found)
            return {file.path: (file.size, file.version) for file in found}


def test_every_file_of_a_save_is_listed_with_its_size(fresh_root: FreshRoot, store: Store) -> None:
    """verify.1."""
    fresh_root.fill("run/1/a", "run/1/deep/b", body=b"abc")
    fresh_root.fill("run/1/empty", body=b"")
    fresh_root.fill("run/10/x", "run/1.ckpt")
    found = files(store, b"run/1")
    assert {path: size for path, (size, _) in found.items()} == {b"a": 3, b"deep/b": 3, b"empty": 0}
    assert found[b"deep/b"][1] == store.version(b"run/1/deep/b")
    assert files(store, b"run/2") == {}
    assert files(store, b"run/1.ckpt") == {}


def test_a_save_of_more_files_than_a_page_is_listed(fresh_root: FreshRoot, store: Store) -> None:
    """verify.1."""
    fresh_root.fill(*(f"run/1/{number:04}" for number in range(1005)))
    assert len(files(store, b"run/1")) == 1005


def test_files_are_listed_by_their_names(fresh_root: FreshRoot, store: Store) -> None:
    """watch.1: saves that are one file."""
    fresh_root.fill("run/last.ckpt", "run/a.ckpt", "run/folder/x", "runner", "top")
    assert sorted(pages(lambda token: store.list_files_in(b"run", token))) == [b"a.ckpt", b"last.ckpt"]
    assert sorted(pages(lambda token: store.list_files_in(b"", token))) == [b"runner", b"top"]
    assert sorted(pages(lambda token: store.list_files_in(b"not/there", token))) == []


def test_the_version_of_a_file_tells_whether_it_was_written_anew(fresh_root: FreshRoot, store: Store) -> None:
    """watch.9."""
    fresh_root.fill("s/.metadata", body=b"one")
    first = store.version(b"s/.metadata")
    assert first == store.version(b"s/.metadata") is not None
    fresh_root.fill("s/.metadata", body=b"other")
    assert store.version(b"s/.metadata") != first
    assert store.version(b"s") is None
    assert store.version(b"s/.meta") is None


@pytest.mark.parametrize(
    ("start", "length", "part"),
    [(0, 4, b"0123"), (2, 3, b"234"), (8, 98, b"89"), (10, 5, b""), (20, 5, b""), (-3, 98, b"789"), (-3, 2, b"78"),
     (-98, 98, b"0123456789")],
)  # fmt: skip
def test_a_part_of_a_file_is_read(fresh_root: FreshRoot, store: Store, start: int, length: int, part: bytes) -> None:
    """verify.1."""
    fresh_root.fill("s/weights", body=b"0123456789")
    assert store.read_range(b"s/weights", start, length) == part


def test_a_part_of_what_is_empty_or_not_there(fresh_root: FreshRoot, store: Store) -> None:
    """verify.1."""
    fresh_root.fill("s/empty", body=b"")
    for start in (-98, 0, 5):
        assert store.read_range(b"s/empty", start, 98) == b""
        with pytest.raises(FormatError, match="not there"):
            store.read_range(b"s/other", start, 98)


def test_what_the_user_wrote_leads_to_itself_and_is_trusted(fresh_root: FreshRoot, store: Store) -> None:
    """alias.1."""
    fresh_root.fill("run/1/a")
    assert store.real_path(b"run/1") == b"run/1"
    assert store.owner_is_trusted(b"run/1", b"run")
    assert store.owner_is_trusted(b"run/2", b"run")
