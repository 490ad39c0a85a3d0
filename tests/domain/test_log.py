"""The log in order and with its times."""

from __future__ import annotations

import pytest

from publish.domain.entry import Entry
from publish.domain.errors import FormatError
from publish.domain.executions import Begun, Execution, all_executions, epoch_name
from publish.domain.log import Publication, read_log
from publish.domain.ports import Namespace
from tests.support.fakes import FakeStore
from tests.support.retrying import retrying


def test_the_log_is_read_in_order_with_the_times_of_its_entries() -> None:
    """log.1"""
    store = FakeStore(page_size=2)
    made = [Entry.of(epoch, step, b"run/%d" % step) for epoch, step in ((1, 5), (2, 3), (1, 9), (2, 1), (3, 0))]
    store.names[Namespace.PUB] = {entry.name for entry in made}
    store.times = {entry.name: float(entry.step) for entry in made}
    assert read_log(retrying(store)) == [Publication(entry, float(entry.step)) for entry in sorted(made)]


@pytest.mark.parametrize(("set_to", "read"), [(2.0**63, 253_402_300_799.0), (-(2.0**63), -62_135_596_800.0)])
def test_a_time_that_cannot_be_written_is_moved_to_one_that_can(set_to: float, read: float) -> None:
    """log.1"""
    store = FakeStore()
    made = [Entry.of(1, step, b"run/%d" % step) for step in (1, 2)]
    store.names[Namespace.PUB] = {entry.name for entry in made}
    store.times = {made[0].name: set_to, made[1].name: 1.79e9}
    assert [one.created for one in read_log(retrying(store))] == [read, 1.79e9]


def test_an_unrecognised_name_is_an_error_that_names_it() -> None:
    """layout.4, log.1"""
    store = FakeStore()
    store.names[Namespace.PUB] = {b"README", b"notes", Entry.of(1, 1, b"a").name}
    with pytest.raises(FormatError, match="README") as error:
        read_log(retrying(store))
    assert [str(fault) for fault in error.value.more] == ["pub/: unrecognised entry (move it out of the folder): notes"]


def test_the_executions_are_read_oldest_first_with_their_times() -> None:
    """log.2, begin.4"""
    store = FakeStore(page_size=1)
    entry = Entry.of(1, 5, b"run/5")
    began = [Begun(Execution(1, b"try-1", None), 7.0), Begun(Execution(2, b"try-0", entry), 9.0)]
    for execution, at in began:
        store.create(Namespace.EPOCH, epoch_name(execution.epoch), execution.attempt)
        store.create(Namespace.BEGIN, execution.attempt, execution.record)
        store.times[execution.attempt] = at
    assert all_executions(retrying(store)) == began
