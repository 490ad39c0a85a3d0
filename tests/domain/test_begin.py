"""What one execution gets, and what every other call with its attempt gets (begin.1 to begin.6, prune.12)."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.begin import BeginOptions, begin
from publish.domain.entry import MAX_UINT64, Entry
from publish.domain.errors import ConfigError, FormatError
from publish.domain.executions import (
    Execution,
    check_not_published,
    claimant,
    claimed_epochs,
    epoch_name,
    recorded,
    resumed_by_newest,
)
from publish.domain.listing import entries
from publish.domain.ports import Namespace
from tests.support.fakes import FakeStore


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


def publish(store: FakeStore, epoch: int, step: int) -> Entry:
    entry = Entry.of(epoch, step, b"exec/a/step-%d" % step)
    store.names[Namespace.PUB].add(entry.name)
    store.files[entry.path + b"/weights"] = b"w"
    return entry


def resumed(store: FakeStore) -> Entry | None:
    return resumed_by_newest(store, set(entries(store, Namespace.PUB)))


def test_the_first_execution_starts_from_step_0(store: FakeStore) -> None:
    """begin.2, begin.4"""
    assert begin(store, b"a", BeginOptions()) == Execution(1, b"a", None)
    assert store.read_record(Namespace.BEGIN, b"a") == b"1 -\n"
    assert store.read_record(Namespace.EPOCH, b"00000000000000000001") == b"a"


def test_the_next_execution_resumes_from_the_latest_publication(store: FakeStore) -> None:
    """begin.2, begin.4"""
    publish(store, 6, 1)
    latest = publish(store, 6, 2)
    assert begin(store, b"a", BeginOptions()) == Execution(7, b"a", latest)
    assert store.read_record(Namespace.BEGIN, b"a") == b"7 %s\n" % latest.name


def test_an_attempt_gets_its_first_answer_again_whatever_was_published_since(store: FakeStore) -> None:
    """begin.1"""
    first = begin(store, b"a", BeginOptions())
    publish(store, 1, 5)
    assert begin(store, b"b", BeginOptions()).epoch == 2
    assert begin(store, b"a", BeginOptions()) == first
    assert begin(store, b"a", BeginOptions(epoch=1)) == first


@pytest.mark.parametrize("options", [BeginOptions(epoch=2), BeginOptions(save=b"exec/a/step-1")])
def test_an_option_that_contradicts_the_record_is_refused(store: FakeStore, options: BeginOptions) -> None:
    """begin.1"""
    begin(store, b"a", BeginOptions())
    publish(store, 1, 1)
    with pytest.raises(ConfigError, match=r"this attempt has begun already, .*: a$"):
        begin(store, b"a", options)


def test_an_epoch_is_above_every_claimed_one_and_every_published_one(store: FakeStore) -> None:
    """begin.2"""
    store.create(Namespace.EPOCH, epoch_name(8), b"burned")
    assert begin(store, b"a", BeginOptions()).epoch == 9
    publish(store, 30, 1)
    assert begin(store, b"b", BeginOptions()).epoch == 31


def test_the_scheduler_gives_the_epoch(store: FakeStore) -> None:
    """begin.2"""
    assert begin(store, b"a", BeginOptions(epoch=0)).epoch == 0
    assert begin(store, b"b", BeginOptions(epoch=12_000_003)).epoch == 12_000_003


@pytest.mark.parametrize("epoch", [5, 4])
def test_an_epoch_that_the_scheduler_did_not_raise_is_refused(store: FakeStore, epoch: int) -> None:
    """begin.5"""
    begin(store, b"a", BeginOptions(epoch=5))
    with pytest.raises(
        ConfigError,
        match=f"the scheduler must raise it with every execution, or give none and get a free one: {epoch}$",
    ):
        begin(store, b"b", BeginOptions(epoch=epoch))
    assert recorded(store, b"b") is None


@pytest.mark.parametrize("epoch", [5, 4])
def test_an_epoch_that_is_not_above_the_log_is_refused(store: FakeStore, epoch: int) -> None:
    """begin.5"""
    publish(store, 5, 1)
    with pytest.raises(ConfigError, match="an earlier execution has this epoch or a higher one"):
        begin(store, b"a", BeginOptions(epoch=epoch))
    assert claimed_epochs(store) == []


def test_an_epoch_that_this_attempt_claimed_before_it_was_killed_is_used(store: FakeStore) -> None:
    """begin.5: also where the scheduler gave it"""
    store.create(Namespace.EPOCH, epoch_name(5), b"a")
    assert begin(store, b"a", BeginOptions(epoch=5)).epoch == 5


def test_no_epoch_is_left_above_the_greatest(store: FakeStore) -> None:
    """begin.2"""
    publish(store, MAX_UINT64, 1)
    with pytest.raises(
        ConfigError, match=r"there is no epoch above .*\(.*retract .*\.publish/epoch/\): 18446744073709551615$"
    ):
        begin(store, b"a", BeginOptions())


@pytest.mark.parametrize("attempt", [b"a", b"b"])
def test_nothing_resumes_from_a_save_whose_path_has_control_characters(store: FakeStore, attempt: bytes) -> None:
    """layout.8: `resolve` fails on it, too; the record of attempt b names it."""
    entry = Entry.of(1, 2, b"run/2\x1b[2J")
    store.files[entry.path] = b""
    store.create(Namespace.PUB, entry.name)
    store.create(Namespace.BEGIN, b"b", Execution(1, b"b", entry).record)
    with pytest.raises(FormatError, match="control characters"):
        begin(store, attempt, BeginOptions())
    assert store.names[Namespace.EPOCH] == set()


def test_going_back_resumes_from_an_earlier_publication(store: FakeStore) -> None:
    """begin.6"""
    earlier = publish(store, 3, 1)
    publish(store, 3, 2)
    options = BeginOptions(save=earlier.path)
    assert begin(store, b"a", options) == Execution(4, b"a", earlier)
    assert begin(store, b"a", options).resume == earlier


def test_going_back_leaves_no_other_choice(store: FakeStore) -> None:
    """begin.6, verify.2: what chooses only whole saves may refuse this one"""
    earlier = publish(store, 1, 1)
    publish(store, 1, 2)
    choices: list[set[Entry]] = []

    def choose(log: Collection[Entry]) -> Entry | None:
        choices.append(set(log))
        raise ConfigError("not whole")

    with pytest.raises(ConfigError, match="not whole"):
        begin(store, b"a", BeginOptions(save=earlier.path), choose)
    assert choices == [{earlier}]
    assert store.read_record(Namespace.BEGIN, b"a") is None


def test_going_back_to_what_is_not_published_is_refused(store: FakeStore) -> None:
    """begin.6"""
    store.files[b"exec/a/step-1/weights"] = b"w"
    with pytest.raises(ConfigError, match=r"-from: this save is not published \(publish log .*\): exec/a/step-1"):
        begin(store, b"a", BeginOptions(save=b"exec/a/step-1"))


def test_a_latest_save_that_is_gone_is_refused_and_nothing_is_recorded(store: FakeStore) -> None:
    """begin.5"""
    entry = publish(store, 3, 1)
    store.files.clear()
    with pytest.raises(ConfigError, match=r"is gone \(retract it, or go back to another with -from\)"):
        begin(store, b"a", BeginOptions())
    assert recorded(store, b"a") is None
    store.files[entry.path + b"/weights"] = b"w"
    assert begin(store, b"a", BeginOptions()) == Execution(5, b"a", entry)


def test_a_save_that_goes_afterwards_is_refused(store: FakeStore) -> None:
    """begin.5"""
    entry = publish(store, 3, 1)
    begin(store, b"a", BeginOptions())
    store.create(Namespace.PRUNE, entry.name)
    with pytest.raises(ConfigError, match="is being removed"):
        begin(store, b"a", BeginOptions())
    store.remove_entries(Namespace.PRUNE, [entry.name])
    store.files.clear()
    with pytest.raises(ConfigError, match="is gone"):
        begin(store, b"a", BeginOptions())


def test_what_another_node_decided_counts_where_a_wish_can_no_longer_be_met(store: FakeStore) -> None:
    """begin.5: its execution has published since, so the epoch is not above the log's"""

    class OvertakenStore(FakeStore):
        def read_record(self, namespace: Namespace, name: bytes) -> bytes | None:
            found = super().read_record(namespace, name)
            if namespace is Namespace.BEGIN and found is None:
                self.create(Namespace.BEGIN, b"a", b"5 -\n")
                publish(self, 5, 1)
            return found

    assert begin(OvertakenStore(), b"a", BeginOptions(epoch=5)) == Execution(5, b"a", None)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"7\n", b"7 \n", b"x -\n", b"-1 -\n", b"7 foreign\n", b"7 -\n\n", b"18446744073709551616 -\n"],
)
def test_a_record_that_does_not_parse_is_named(store: FakeStore, content: bytes) -> None:
    """begin.4"""
    store.create(Namespace.BEGIN, b"a", content)
    with pytest.raises(FormatError, match=r"^\.publish/begin/: broken record \([^()]*\): a$"):
        begin(store, b"a", BeginOptions())


@pytest.mark.parametrize("content", [b"", b"\n", b"a/b", b"a\nb\n", b".", b"..\n", b"\0" * 65536, b"\x1b[31m"])
def test_a_claim_that_names_no_attempt_is_named(store: FakeStore, content: bytes) -> None:
    """begin.4"""
    store.create(Namespace.EPOCH, epoch_name(1), content)
    with pytest.raises(FormatError, match=r"^\.publish/epoch/: broken record \(.*\): 00000000000000000001$"):
        claimant(store, 1)


@pytest.mark.parametrize("name", [b"7", b"0000000000000000000x", b"18446744073709551616", b"README"])
def test_a_name_that_is_not_an_epoch_is_named(store: FakeStore, name: bytes) -> None:
    """begin.4"""
    store.create(Namespace.EPOCH, name, b"a")
    with pytest.raises(FormatError, match=rf"^\.publish/epoch/: not the record of an epoch .*: {name.decode()}$"):
        begin(store, b"a", BeginOptions())


@given(st.integers(0, MAX_UINT64), st.integers(0, MAX_UINT64), st.booleans())
def test_a_record_says_what_was_written(epoch: int, step: int, from_the_start: bool) -> None:  # noqa: FBT001  (given)
    """begin.4"""
    execution = Execution(epoch, b"a", None if from_the_start else Entry.of(epoch, step, b"exec/x"))
    store = FakeStore()
    store.create(Namespace.BEGIN, b"a", execution.record)
    assert recorded(store, b"a") == execution


def test_what_the_newest_execution_resumed_from_is_held_until_it_publishes(store: FakeStore) -> None:
    """prune.12"""
    assert resumed(store) is None
    entry = publish(store, 3, 1)
    begin(store, b"a", BeginOptions())
    assert resumed(store) == entry
    publish(store, 3, 9)
    assert resumed(store) == entry
    publish(store, 4, 2)
    assert resumed(store) is None


def test_an_epoch_that_was_claimed_and_not_used_holds_nothing(store: FakeStore) -> None:
    """prune.12"""
    entry = publish(store, 3, 1)
    begin(store, b"a", BeginOptions())
    store.create(Namespace.EPOCH, epoch_name(5), b"killed")
    store.create(Namespace.EPOCH, epoch_name(6), b"a")
    assert resumed(store) == entry
    publish(store, 3, 9)
    begin(store, b"b", BeginOptions(save=b"exec/a/step-9"))
    assert resumed(store) == publish(store, 3, 9)


def test_an_epoch_that_another_publication_has_meanwhile_reached_is_not_used() -> None:
    """begin.5"""

    class Overtaking(FakeStore):
        def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
            super().create(namespace, name, content)
            if namespace is Namespace.EPOCH and not self.files:
                self.files[b"run/1/x"] = b""
                self.names[Namespace.PUB].add(Entry.of(5, 1, b"run/1").name)

    assert begin(Overtaking(), b"try-1", BeginOptions()).epoch == 6


@pytest.mark.parametrize(("length", "is_refused"), [(126, False), (127, True), (300, True)])
def test_an_attempt_of_which_no_save_could_be_published_is_refused(
    store: FakeStore, length: int, *, is_refused: bool
) -> None:
    """begin.2, layout.8: `exec/`, the name, and the shortest save; nothing is written"""
    attempt = b"a" * length
    if not is_refused:
        assert begin(store, attempt, BeginOptions()).epoch == 1
        return
    with pytest.raises(ConfigError, match=f"^over 255 bytes: .*: exec/{'a' * length}/0$"):
        begin(store, attempt, BeginOptions())
    assert claimed_epochs(store) == []


def test_an_execution_that_has_published_is_told_apart_from_one_that_has_not(store: FakeStore) -> None:
    """run.8: what others published, and what was published by hand elsewhere, does not count"""
    publish(store, 1, 1)
    execution = begin(store, b"b", BeginOptions())
    store.names[Namespace.PUB] |= {Entry.of(execution.epoch, 7, path).name for path in (b"import/7", b"exec/bb/7")}
    check_not_published(store, execution)
    store.names[Namespace.PUB].add(Entry.of(execution.epoch, 8, b"exec/b/8").name)
    with pytest.raises(ConfigError, match=r"has run already and published 1 of its saves, .*: b$"):
        check_not_published(store, execution)
