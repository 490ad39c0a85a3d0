"""The log in order and with its times, and its picture."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.entry import Entry
from publish.domain.errors import FormatError
from publish.domain.executions import Execution, all_executions, epoch_name
from publish.domain.log import Publication, read_log
from publish.domain.ports import Namespace
from publish.domain.timeline import draw
from tests.support.fakes import FakeStore
from tests.support.retrying import retrying
from tests.support.strategies import entries

SVG = "{http://www.w3.org/2000/svg}"


def show(seconds: float) -> str:
    return f"at {seconds:g} <&>"


def test_the_log_is_read_in_order_with_the_times_of_its_entries() -> None:
    """log.1"""
    store = FakeStore(page_size=2)
    made = [Entry.of(epoch, step, b"run/%d" % step) for epoch, step in ((1, 5), (2, 3), (1, 9), (2, 1), (3, 0))]
    store.areas[Namespace.PUB] = {entry.name for entry in made}
    store.times = {entry.name: float(entry.step) for entry in made}
    assert read_log(retrying(store)) == [Publication(entry, float(entry.step)) for entry in sorted(made)]


def test_an_unrecognised_name_is_an_error_that_names_it() -> None:
    """layout.4, log.1"""
    store = FakeStore()
    store.areas[Namespace.PUB] = {b"README", b"notes", Entry.of(1, 1, b"a").name}
    with pytest.raises(FormatError, match="README") as error:
        read_log(retrying(store))
    assert [str(fault) for fault in error.value.more] == ["pub/: unrecognised entry (move it out of the folder): notes"]


def test_the_executions_are_read_oldest_first() -> None:
    """log.2, begin.4"""
    store = FakeStore()
    entry = Entry.of(1, 5, b"run/5")
    began = [Execution(1, b"try-1", None), Execution(2, b"try-0", entry)]
    for execution in began:
        store.create(Namespace.EPOCH, epoch_name(execution.epoch), execution.attempt)
        store.create(Namespace.BEGIN, execution.attempt, execution.record)
    assert all_executions(retrying(store)) == began


def parsed(picture: str) -> ET.Element:
    root = ET.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert not root.findall(f".//{SVG}script")
    assert "href" not in picture
    assert "url(" not in picture
    return root


@given(
    st.lists(st.tuples(entries, st.floats(0, 2e9)), max_size=30),
    st.dictionaries(st.integers(0, 12), st.tuples(st.text(max_size=60), st.none() | st.integers(0, 2**64 - 1))),
)
def test_every_picture_is_well_formed_and_loads_nothing(
    log: list[tuple[Entry, float]], began: dict[int, tuple[str, int | None]]
) -> None:
    """log.2"""
    parsed(draw(sorted(Publication(*one) for one in log), began, show))


def test_an_empty_log_is_a_picture_that_says_so() -> None:
    """log.2"""
    assert "nothing is published yet" in "".join(parsed(draw([], {}, show)).itertext())


def test_the_picture_shows_executions_points_where_they_resumed_and_what_was_lost() -> None:
    """log.2"""
    log = [Publication(Entry.of(1, step, b"a/%d" % step), step * 10.0) for step in (100, 200, 300)]
    log += [Publication(Entry.of(2, step, b"b/%d" % step), step * 10.0 + 900) for step in (250, 350)]
    root = parsed(draw(log, {1: ("job-<1>", None), 2: ("job-2", 200)}, show))
    circles = [one for one in root.findall(f"{SVG}circle") if one.get("r") == "3.5"]
    assert len(circles) == 5
    assert len({one.get("fill") for one in circles}) == 2
    assert len(root.findall(f"{SVG}polyline")) == 2
    assert len(root.findall(f"{SVG}path[@class='resume']")) == 1
    text = " ".join(root.itertext())
    assert "100 steps lost" in text
    assert "epoch 1, job-<1>" in text
    assert "latest step 350 of epoch 2" in text


def test_a_resume_from_a_step_that_is_no_longer_in_the_log_begins_at_the_edge() -> None:
    """log.2: prune removed it."""
    log = [Publication(Entry.of(2, 350, b"b/350"), 10.0)]
    (path,) = parsed(draw(log, {2: ("", 200)}, show)).findall(f"{SVG}path")
    assert str(path.get("d")).startswith("M72.0 ")


def test_thousands_of_publications_stay_a_small_picture() -> None:
    """log.2"""
    log = [Publication(Entry.of(1, step, b"a/%d" % step), float(step)) for step in range(20_000)]
    picture = draw(log, {}, show)
    assert len(picture) < 100_000
    circles = [one for one in parsed(picture).findall(f"{SVG}circle") if one.get("r") == "3.5"]
    assert 300 < len(circles) <= 400


def test_a_long_name_is_cut_and_a_legend_shows_the_newest_executions() -> None:
    """log.2"""
    log = [Publication(Entry.of(epoch, epoch, b"a/%d" % epoch), float(epoch)) for epoch in range(12)]
    text = " ".join(parsed(draw(log, {11: ("x" * 99, None)}, show)).itertext())
    assert "epoch 11, xx" in text
    assert "…" in text
    assert "epoch 3" not in text.replace("epoch 11", "")
