"""What prune keeps, and why."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from publish.domain.entry import Entry, overlap
from publish.domain.retention import Policy, Reason, apply_retention, plan
from tests.support.strategies import entries

KEEP = st.integers(1, 5)
POLICIES = st.builds(Policy, KEEP, st.none() | st.integers(1, 4))
LOGS = st.lists(entries, max_size=12, unique=True)


def at(step: int, path: bytes = b"", epoch: int = 1) -> Entry:
    return Entry.of(epoch, step, path or b"run/%d" % step)


@given(LOGS, POLICIES)
def test_the_newest_stay_and_the_log_is_split_in_two(log: list[Entry], policy: Policy) -> None:
    """prune.1."""
    kept, removed = apply_retention(log, policy)
    assert set(sorted(log)[-policy.keep :]) <= set(kept)
    assert sorted([*kept, *removed]) == sorted(set(log))
    assert list(kept) == sorted(kept)
    assert removed == sorted(removed)
    assert not log or Reason.LATEST in kept[max(log)]


@given(LOGS, KEEP)
def test_without_other_rules_exactly_the_newest_stay(log: list[Entry], keep: int) -> None:
    """prune.1."""
    assert list(apply_retention(log, Policy(keep)).kept) == sorted(log)[-keep:]


@given(LOGS, POLICIES)
def test_multiples_stay(log: list[Entry], policy: Policy) -> None:
    """prune.11: step 0 is a multiple."""
    kept, removed = apply_retention(log, policy)
    for entry in log:
        is_multiple = policy.keep_every is not None and entry.step % policy.keep_every == 0
        assert (Reason.MULTIPLE in kept.get(entry, ())) == is_multiple
        assert not (is_multiple and entry in removed)


def test_what_the_newest_execution_resumed_from_stays() -> None:
    """prune.12."""
    log = [at(step) for step in range(4)]
    assert apply_retention(log, Policy(1), resumed=log[1]).kept == {
        log[1]: [Reason.RESUMED],
        log[3]: [Reason.LATEST, Reason.NEWEST],
    }


def test_an_entry_whose_path_is_being_removed_does_not_count_as_one_of_the_newest() -> None:
    """race.1: its publisher may have to take it back."""
    log = [at(1), at(2), at(1, epoch=2)]
    kept, removed = apply_retention(log, Policy(1), removals=[at(1)])
    assert removed == [at(1)]
    assert set(kept) == {at(2), at(1, epoch=2)}


def test_nothing_is_removed_while_too_few_entries_count() -> None:
    """race.1, prune.1."""
    log = [at(1), at(2)]
    assert apply_retention(log, Policy(2), removals=[at(1)]).removed == []


def test_only_whole_saves_count_and_everything_newer_than_the_oldest_of_them_stays() -> None:
    """verify.4."""
    log = [at(step) for step in range(6)]
    whole = {at(1), at(3)}
    assert apply_retention(log, Policy(1), is_whole=whole.__contains__).removed == log[:3]
    assert apply_retention(log, Policy(2), is_whole=whole.__contains__).removed == log[:1]
    assert apply_retention(log, Policy(9), is_whole=whole.__contains__).removed == log[:1]


def test_nothing_is_removed_if_no_save_is_whole() -> None:
    """verify.4."""
    log = [at(step) for step in range(3)]
    assert apply_retention(log, Policy(1), is_whole=lambda _: False).removed == []


def test_saves_are_checked_newest_first_and_only_as_many_as_needed() -> None:
    """verify.4: reading a save takes time."""
    asked: list[Entry] = []
    log = [at(step) for step in range(5)]

    def is_whole(entry: Entry) -> bool:
        asked.append(entry)
        return entry != log[4]

    apply_retention(log, Policy(2), is_whole=is_whole)
    assert asked == [log[4], log[3], log[2]]


def same(path: bytes) -> bytes | None:
    return path


@given(LOGS, LOGS)
def test_a_save_stays_exactly_if_a_remaining_entry_overlaps_it(removals: list[Entry], remaining: list[Entry]) -> None:
    """prune.2."""
    planned = plan(removals, remaining, same)
    assert [removal.path for removal in planned] == sorted(
        dict.fromkeys(entry.path for entry in sorted(set(removals))), key=lambda path: -path.count(b"/")
    )
    for removal in planned:
        needed = any(overlap(removal.path, entry.path) for entry in remaining)
        assert removal.stays is (Reason.OVERLAP if needed else None)
        assert {entry.path for entry in removal.records} == {removal.path}


def test_inner_saves_come_before_the_saves_around_them() -> None:
    """prune.1."""
    planned = plan([at(1, b"a"), at(2, b"a/b/c"), at(3, b"a/b")], [], same)
    assert [removal.path for removal in planned] == [b"a/b/c", b"a/b", b"a"]


def test_names_that_share_letters_do_not_overlap() -> None:
    """prune.3."""
    (removal,) = plan([at(1, b"checkpoint-1")], [at(10, b"checkpoint-10")], same)
    assert removal.stays is None


def test_a_save_that_a_remaining_entry_leads_to_through_a_link_stays() -> None:
    """alias.1."""
    links = {b"last": b"run/200"}
    (removal,) = plan([at(200, b"run/200")], [at(201, b"last")], lambda path: links.get(path, path))
    assert removal.stays is Reason.ALIAS


def test_an_entry_that_leads_nowhere_below_the_root_protects_its_own_path_only() -> None:
    """alias.1."""
    planned = plan([at(1, b"a"), at(2, b"b")], [at(3, b"a/x")], lambda _: None)
    assert [(removal.path, removal.stays) for removal in planned] == [(b"a", Reason.OVERLAP), (b"b", None)]
