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
def test_the_latest_entries_are_kept_and_the_others_removed(log: set[Entry], keep: int) -> None:
    """prune.1."""
    kept, removed = apply_retention(log, keep)
    assert kept == sorted(log)[-keep:]
    assert removed == sorted(log - set(kept))
    assert not log or max(log) in kept


@given(st.sets(close_entries), st.sets(close_entries))
def test_a_save_that_remaining_entries_need_stays_and_every_other_is_removed(
    removals: set[Entry], remaining: set[Entry]
) -> None:
    """prune.2."""
    planned = plan(removals, remaining)
    assert {removal.path for removal in planned} == {entry.path for entry in removals}
    assert sorted(record for removal in planned for record in removal.records) == sorted(removals)
    for removal in planned:
        assert all(record.path == removal.path for record in removal.records)
        needed = any(overlap(removal.path, entry.path) for entry in remaining)
        if removal.path == b"prune/x":
            assert removal.reason is Reason.RESERVED
        else:
            assert removal.reason is (Reason.REFERENCED if needed else Reason.UNREFERENCED)


@given(st.sets(close_entries))
def test_inner_saves_are_removed_before_outer_ones_and_others_in_the_order_of_the_log(removals: set[Entry]) -> None:
    """prune.1."""
    planned = plan(removals, [])
    for position, removal in enumerate(planned):
        for earlier in planned[:position]:
            assert not removal.path.startswith(earlier.path + b"/")
            if removal.path.count(b"/") == earlier.path.count(b"/"):
                assert earlier.records[0] < removal.records[0]


def test_a_save_whose_name_is_a_prefix_of_another_is_not_protected_by_it() -> None:
    """prune.2, prune.3."""
    (removal,) = plan([Entry.of(1, 1, b"checkpoint-1")], [Entry.of(1, 10, b"checkpoint-10")])
    assert removal.reason is Reason.UNREFERENCED
