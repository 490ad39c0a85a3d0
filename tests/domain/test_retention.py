"""What prune keeps and removes, and why."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from publish.domain.entry import Entry, overlap
from publish.domain.retention import Reason, apply_retention, plan
from tests.support import strategies

close_paths = st.lists(st.sampled_from([b"a", b"b", b"c1", b"c10"]), min_size=1, max_size=3).map(b"/".join)
close_entries = st.builds(Entry.of, st.integers(0, 3), st.integers(0, 5), close_paths | st.just(b"prune/x"))


@given(st.sets(strategies.entries), st.integers(1, 5))
def test_the_latest_are_kept_and_the_others_removed(log: set[Entry], keep: int) -> None:
    """prune.1."""
    kept, removed = apply_retention(log, keep)
    assert kept == sorted(log)[-keep:]
    assert removed == sorted(log - set(kept))
    assert not log or max(log) in kept


@given(st.sets(close_entries), st.sets(close_entries))
def test_a_save_that_remaining_entries_need_stays_and_every_other_goes(
    removals: set[Entry], remaining: set[Entry]
) -> None:
    """prune.2."""
    folders = plan(removals, remaining)
    assert {folder.path for folder in folders} == {entry.path for entry in removals}
    assert sorted(record for folder in folders for record in folder.records) == sorted(removals)
    for folder in folders:
        assert all(record.path == folder.path for record in folder.records)
        needed = any(overlap(folder.path, entry.path) for entry in remaining)
        if folder.path == b"prune/x":
            assert folder.reason is Reason.RESERVED
        else:
            assert folder.reason is (Reason.REFERENCED if needed else Reason.UNREFERENCED)


@given(st.sets(close_entries))
def test_inner_saves_go_before_outer_ones_and_others_in_the_logs_order(removals: set[Entry]) -> None:
    """prune.1."""
    folders = plan(removals, [])
    for position, folder in enumerate(folders):
        for earlier in folders[:position]:
            assert not folder.path.startswith(earlier.path + b"/")
            if folder.path.count(b"/") == earlier.path.count(b"/"):
                assert earlier.records[0] < folder.records[0]


def test_folders_that_share_letters_do_not_protect_one_another() -> None:
    """prune.2, prune.3."""
    (folder,) = plan([Entry.of(1, 1, b"checkpoint-1")], [Entry.of(1, 10, b"checkpoint-10")])
    assert folder.reason is Reason.UNREFERENCED
