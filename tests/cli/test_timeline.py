"""The picture of a run's history."""

from __future__ import annotations

from itertools import pairwise
from time import process_time
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.cli.timeline import Start, draw
from publish.domain.entry import Entry
from publish.domain.log import Publication
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


def parsed(picture: str) -> ET.Element:
    root = ET.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert not root.findall(f".//{SVG}script")
    assert "href" not in picture
    assert "url(" not in picture
    return root


@given(
    st.lists(st.tuples(entries, st.floats(0, 2e9)), max_size=30),
    st.dictionaries(
        st.integers(0, 12),
        st.builds(Start, st.text(max_size=60), st.floats(0, 2e9), st.none() | st.integers(0, 2**64 - 1)),
    ),
)
def test_every_picture_is_well_formed_and_loads_nothing(
    log: list[tuple[Entry, float]], starts: dict[int, Start]
) -> None:
    """log.2"""
    parsed(draw(sorted(Publication(*one) for one in log), starts, show))


def test_an_empty_log_is_a_picture_that_says_so() -> None:
    """log.2"""
    assert "nothing is published yet" in "".join(parsed(draw([], {}, show)).itertext())


def test_the_picture_shows_executions_points_where_they_resumed_and_what_was_lost() -> None:
    """log.2"""
    log = [Publication(Entry.of(1, step, b"a/%d" % step), step * 10.0) for step in (100, 200, 300)]
    log += [Publication(Entry.of(2, step, b"b/%d" % step), step * 10.0 + 900) for step in (250, 350)]
    root = parsed(draw(log, {1: Start("job-<1>", 0, None), 2: Start("job-2", 3300, 200)}, show))
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
    root = parsed(draw(log, {1: Start("a", 0, None), 2: Start("b", 1900, 300), 3: Start("c", 3900, 500)}, show))
    assert len(root.findall(f"{SVG}path[@class='resume']")) == 2
    assert len(root.findall(f"{SVG}path[@class='lost']")) == 1
    assert "600 steps lost" in text_of(root)


def test_a_resume_from_a_step_that_is_no_longer_in_the_log_is_a_short_line() -> None:
    """log.2: prune removed it."""
    log = publications(1, range(100, 200, 100), 0) + publications(2, range(350, 360, 10), 1000)
    (resume,) = parsed(draw(log, {2: Start("", 990, 200)}, show)).findall(f"{SVG}path[@class='resume']")
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


def rings(picture: ET.Element) -> list[tuple[float, float]]:
    """Where the starts are, those of the legend left out."""
    found = picture.findall(f"{SVG}circle[@class='start']")
    return [(float(one.get("cx", "")), y) for one in found if (y := float(one.get("cy", ""))) < 380]


def test_executions_that_published_nothing_are_drawn_where_they_began() -> None:
    """log.2: each is a ring at the step that it resumed from, and the line of its resume leads there."""
    log = publications(1, range(101), 1000)
    starts = {0: Start("before", 5.0, None), 1: Start("a", 1000.0, None)}
    starts |= {epoch: Start(f"dies-{epoch}", 1000.0 + 100 * epoch, 50) for epoch in (2, 3)}
    root = parsed(draw(log, starts, show))
    middle, right, bottom = (356 + 56) / 2, 960 - 52, 356
    assert rings(root) == [(72, bottom), (pytest.approx(72 + (right - 72) * 2 / 3, abs=0.1), middle), (right, middle)]
    ends = [float(str(one.get("d")).split("H")[1]) for one in root.findall(f"{SVG}path[@class='resume']")]
    assert ends == [x for x, _ in rings(root)[1:]]
    assert "executions without a publication: 2" in text_of(root)
    assert "epoch 3, dies-3" in text_of(root)
    assert "before" not in text_of(root)
    assert len(points(root)) == 1


def test_a_start_that_a_clock_put_after_its_publications_is_left_out() -> None:
    """log.2"""
    root = parsed(draw(publications(1, range(10), 0), {1: Start("a", 5.0, None)}, show))
    assert rings(root) == []


def test_the_greatest_steps_and_epochs_fit_the_picture() -> None:
    """log.2: every label is inside, if a character is eight pixels wide."""
    most = 2**64 - 1
    log = [Publication(Entry.of(most - 1, most - 10**k, b"%d" % k), 60.0 * (19 - k)) for k in range(19, -1, -1)]
    log += [Publication(Entry.of(most, 10, b"last"), 2000.0)]
    root = parsed(draw(log, {most: Start("x" * 40, 1900.0, 5)}, show))
    assert f"{log[-2].entry.step - 5} steps lost" in text_of(root)
    for text in root.findall(f"{SVG}text"):
        x, width = float(text.get("x", "")), 8 * len(next(iter(text)).tail or "" if len(text) else text.text or "")
        left = {"end": x - width, "middle": x - width / 2}.get(text.get("text-anchor", ""), x)
        assert left >= 0, text.text
        assert left + width <= 960, text.text


def test_thousands_of_publications_stay_a_small_picture() -> None:
    """log.2"""
    picture = draw(publications(1, range(20_000), 0), {}, show)
    assert len(picture) < 30_000
    ((_, drawn),) = points(parsed(picture))
    assert 300 < drawn <= 400


def test_hundreds_of_executions_stay_a_small_picture_whose_labels_do_not_cover_each_other() -> None:
    """log.2"""
    log = [one for epoch in range(500) for one in publications(epoch, range(epoch * 10, epoch * 10 + 30), epoch * 60)]
    root = parsed(
        picture := draw(log, {epoch: Start("", epoch * 60.0 - 1, epoch * 10 - 1) for epoch in range(1, 500)}, show)
    )
    assert len(picture) < 250_000
    assert {drawn for _, drawn in points(root)} == {2}
    labels = [(one.text or "", float(one.get("x", ""))) for one in root.findall(f"{SVG}text")]
    lost = sorted((x, x + 8 * len(text)) for text, x in labels if "lost" in text)
    assert 2 < len(lost) <= 9
    assert all(end < begin for (_, end), (begin, _) in pairwise(lost))


def test_a_long_name_is_cut_and_a_legend_shows_the_newest_executions() -> None:
    """log.2"""
    log = [Publication(Entry.of(epoch, epoch, b"a/%d" % epoch), float(epoch)) for epoch in range(12)]
    text = " ".join(parsed(draw(log, {11: Start("x" * 99, 11.0, None)}, show)).itertext())
    assert "epoch 11, xx" in text
    assert "…" in text
    assert "epoch 3" not in text.replace("epoch 11", "")


def test_a_name_can_neither_leave_its_label_nor_turn_it() -> None:
    """log.2: an attempt is named by its record's file, which another user may have made."""
    log = [Publication(Entry.of(1, 1, b"a/1"), 1.0)]
    drawn = draw(log, {1: Start("</text><\u202e\x9b\x00\udc80é", 1.0, None)}, show)
    assert "epoch 1, </text><????é" in " ".join(parsed(drawn).itertext())


@pytest.mark.parametrize("created", [253_402_300_799.0, -62_135_596_800.0])
def test_the_first_and_the_last_time_that_can_be_written_have_few_labels(created: float) -> None:
    """log.2"""
    log = [Publication(Entry.of(1, 1, b"run/1"), created), Publication(Entry.of(1, 2, b"run/2"), 1.79e9)]
    times = parsed(draw(log, {}, show)).findall(f"{SVG}text[@text-anchor='middle']")
    assert 0 < len(times) <= 6


def test_a_picture_of_many_executions_takes_time_in_proportion_to_their_number() -> None:
    """log.2: a user who may write to .publish/ could make as many"""

    def seconds(number: int) -> float:
        log = [Publication(Entry.of(epoch, epoch, b"a"), float(epoch)) for epoch in range(number)]
        starts = {number + epoch: Start("a", float(epoch), None) for epoch in range(number)}
        began = process_time()
        draw(log, starts, show)
        return process_time() - began

    assert min(seconds(8000) for _ in range(3)) < 16 * max(min(seconds(1000) for _ in range(3)), 0.01)
