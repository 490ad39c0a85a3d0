"""The log in order and with its times, and its picture."""

from __future__ import annotations

from itertools import pairwise
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


def show(seconds: float, interval: float) -> str:
    return f"at {seconds:.0f} <&> by {interval:.0f}"


def points(picture: ET.Element) -> list[tuple[str | None, int]]:
    """Of each execution, its colour and its number of points."""
    drawn = picture.findall(f"{SVG}path[@class='points']")
    return [(one.get("stroke"), str(one.get("d")).count("M")) for one in drawn]


def text_of(picture: ET.Element) -> str:
    return " ".join(picture.itertext())


def publications(epoch: int, steps: range, start: float) -> list[Publication]:
    """A step takes a second."""
    return [Publication(Entry.of(epoch, step, b"%d/%d" % (epoch, step)), start + step - steps[0]) for step in steps]


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
    (first, second) = points(root)
    assert (first[1], second[1]) == (3, 2)
    assert first[0] != second[0]
    assert len(root.findall(f"{SVG}polyline")) == 2
    assert len(root.findall(f"{SVG}path[@class='resume']")) == 1
    text = " ".join(root.itertext())
    assert "100 steps lost" in text
    assert "epoch 1, job-<1>" in text
    assert "latest step 350 of epoch 2" in text


def test_only_what_the_execution_before_had_published_is_lost() -> None:
    """log.2: the third execution goes on where the second one ended."""
    log = publications(1, range(100, 1000, 100), 0)
    log += publications(2, range(400, 600, 100), 2000) + publications(3, range(600, 900, 100), 4000)
    root = parsed(draw(log, {1: ("a", None), 2: ("b", 300), 3: ("c", 500)}, show))
    assert len(root.findall(f"{SVG}path[@class='resume']")) == 2
    assert len(root.findall(f"{SVG}path[@class='lost']")) == 1
    assert "600 steps lost" in text_of(root)


def test_a_resume_from_a_step_that_is_no_longer_in_the_log_is_a_short_line() -> None:
    """log.2: prune removed it."""
    log = publications(1, range(100, 200, 100), 0) + publications(2, range(350, 360, 10), 1000)
    (resume,) = parsed(draw(log, {2: ("", 200)}, show)).findall(f"{SVG}path[@class='resume']")
    start, end = str(resume.get("d")).removeprefix("M").split(" ")[0], str(resume.get("d")).split("H")[1].split(" ")[0]
    assert float(end) - float(start) == 24


@given(st.integers(0, 2**63), st.integers(2, 2**40), st.floats(0, 2e9), st.floats(1, 1e9))
def test_labels_are_round_numbers_at_their_own_places(first: int, rise: int, time: float, lasted: float) -> None:
    """log.2: steps are 1, 2 or 5 times a power of 10 apart, and no two labels are the same."""
    log = [Publication(Entry.of(1, first, b"a"), time), Publication(Entry.of(1, first + rise, b"b"), time + lasted)]
    root = parsed(draw(log, {}, show))
    labels = {int(one.text or ""): float(one.get("y", "")) for one in root.findall(f"{SVG}text") if _is_step(one)}
    steps = sorted(labels)
    assert 2 <= len(steps) <= 6
    (apart,) = {after - before for before, after in pairwise(steps)}
    assert str(apart).rstrip("0") in {"1", "2", "5"}
    assert all(step % apart == 0 for step in steps)
    bottom, top = 420 - 64, 56
    for step, y in labels.items():
        assert abs(y - 4 - (bottom - (step - first) / rise * (bottom - top))) < 0.1
    times = [one.text for one in root.findall(f"{SVG}text[@text-anchor='middle']")]
    assert 0 < len(times) <= 6
    assert len(set(times)) == len(times)


def _is_step(text: ET.Element) -> bool:
    return text.get("text-anchor") == "end" and text.text != "step"


def test_thousands_of_publications_stay_a_small_picture() -> None:
    """log.2"""
    picture = draw(publications(1, range(20_000), 0), {}, show)
    assert len(picture) < 30_000
    ((_, drawn),) = points(parsed(picture))
    assert 300 < drawn <= 400


def test_hundreds_of_executions_stay_a_small_picture_whose_labels_do_not_cover_each_other() -> None:
    """log.2"""
    log = [one for epoch in range(500) for one in publications(epoch, range(epoch * 10, epoch * 10 + 30), epoch * 60)]
    root = parsed(picture := draw(log, {epoch: ("", epoch * 10 - 1) for epoch in range(1, 500)}, show))
    assert len(picture) < 250_000
    assert {drawn for _, drawn in points(root)} == {2}
    lost = sorted(float(one.get("x", "")) for one in root.findall(f"{SVG}text") if "lost" in (one.text or ""))
    assert 2 < len(lost) <= 9
    assert all(after - before >= 110 for before, after in pairwise(lost))


def test_a_long_name_is_cut_and_a_legend_shows_the_newest_executions() -> None:
    """log.2"""
    log = [Publication(Entry.of(epoch, epoch, b"a/%d" % epoch), float(epoch)) for epoch in range(12)]
    text = " ".join(parsed(draw(log, {11: ("x" * 99, None)}, show)).itertext())
    assert "epoch 11, xx" in text
    assert "…" in text
    assert "epoch 3" not in text.replace("epoch 11", "")
