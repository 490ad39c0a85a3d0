"""The installed program prunes a real store: much of it, in little time, and killed anywhere."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.fault_proxy import passes
from tests.support.program import start
from tests.support.s3_jobs import S3Job
from tests.support.wire_faults import Held, says


@pytest.mark.parametrize(("saves", "objects"), [(30, 2_100), pytest.param(1_000, 10_000, marks=pytest.mark.exhaustive)])
def test_many_entries_and_a_save_of_many_objects_are_removed_in_pages(saves: int, objects: int, job: S3Job) -> None:
    """prune.1, prune.3: requests are for pages and batches, not for objects."""
    job.place.fill(*(f"{job.path(step)}/trainer_state.json" for step in range(saves + 2)))
    job.place.fill(*(f"{job.path(1)}/shard-{number:05}" for number in range(objects)))
    job.record(*range(saves + 1))
    result = job.run("prune", "-keep", "1")
    assert (result.status, result.err) == (0, b"")
    assert len(result.out.splitlines()) == saves
    kept = [job.path(saves), job.path(saves + 1)]
    assert sorted(job.place.paths()) == [*(f"{path}/trainer_state.json" for path in kept), f"pub/{job.entry(saves)}"]
    # For a save: a record, a list, its marker, its batch, a list; for the big one, three a page. The log is read and
    # changed in pages; the executions and the kept save are looked for.
    pages = objects // 999 + 1
    assert len(job.wire.asked) <= 5 * saves + 3 * pages + 24


def test_a_dry_run_only_reads(job: S3Job) -> None:
    """prune.10: with credentials that may not write."""
    for step in range(4):
        job.save(step, "a", "b")
    job.record(*range(4))
    for method in ("PUT", "POST", "DELETE"):
        job.wire.spoil_all(method, says(403, "AccessDenied"))
    result = job.run("prune", "-keep", "1", "-keep-every", "2", "-dry-run")
    assert (result.status, result.out.decode()) == (0, f"would remove {job.url(1)}\n")
    assert list(result.notes) == [
        f"prune: would keep {job.url(0)}: its step is a multiple of 2",
        f"prune: would keep {job.url(2)}: its step is a multiple of 2",
        f"prune: would keep {job.url(3)}: the latest publication, within -keep 1",
    ]
    # The log, the removal records, the epochs, and each save that stays or goes.
    assert len(job.wire.asked) == 3 + 4


def test_a_picture_costs_a_listing_and_a_read_for_each_execution_more(job: S3Job, tmp_path: Path) -> None:
    """log.1, log.2"""
    job.save(1)
    job.record(1)
    for attempt in ("try-1", "try-2"):
        assert job.run("begin", "-attempt", attempt).status == 0
    before = len(job.wire.asked)
    assert job.run("log", "-svg", tmp_path / "run.svg").status == 0
    assert len(job.wire.asked) - before == 1 + 1 + 2
    assert job.run("begin", "-attempt", "a b+&<c>").status == 0
    assert job.run("log", "-svg", tmp_path / "run.svg").status == 0
    picture = " ".join(ET.parse(tmp_path / "run.svg").getroot().itertext())
    assert "epoch 3, try-2" in picture
    assert "epoch 4, a b+&<c>" in picture


def test_a_store_without_batches_is_pruned_one_by_one(job: S3Job) -> None:
    """prune.1"""
    for step in range(4):
        job.save(step, "a", "b")
    job.record(*range(4))
    job.wire.spoil_all("POST", says(501, "NotImplemented"))
    assert job.run("prune", "-keep", "1").status == 0
    assert job.published() == [3]
    assert {path.split("/")[2] for path in job.place.paths() if path.startswith("exec/")} == {"checkpoint-3"}


def test_a_failed_removal_is_reported_and_done_by_the_next_prune(job: S3Job) -> None:
    """prune.5, prune.7"""
    for step in range(4):
        job.save(step, "a", "b")
    job.record(*range(4))
    for method in ("POST", "DELETE"):
        job.wire.spoil_all(method, says(403, "AccessDenied"), part="checkpoint-1/")
    job.wire.spoil_all("POST", says(403, "AccessDenied"), part="?delete")
    result = job.run("prune", "-keep", "1")
    assert result.status == 1
    assert all("AccessDenied" in note for note in result.notes)
    job.wire.heal()
    for _ in range(2):
        assert job.run("prune", "-keep", "1").status == 0
    assert job.published() == [3]
    assert {path.split("/")[2] for path in job.place.paths() if path.startswith("exec/")} == {"checkpoint-3"}
    assert not [path for path in job.place.paths() if path.startswith("prune/")]


@pytest.mark.parametrize(
    ("happens", "stride"),
    [
        pytest.param(True, 5, id="after some requests"),
        pytest.param(True, 1, id="after each request", marks=pytest.mark.exhaustive),
        pytest.param(False, 1, id="before each request", marks=pytest.mark.exhaustive),
    ],
)
def test_a_prune_killed_at_any_request_is_completed_by_the_next(happens: bool, stride: int, job: S3Job) -> None:  # noqa: FBT001
    """prune.6, prune.7"""
    for number in count(step=stride):
        for path in job.place.paths():
            job.place.store().delete(path.encode())
        for step in (1, 2, 3):
            job.save(step, "weights")
        job.record(1, 2, 3)
        held = Held(happens=happens)
        job.wire.heal()
        job.wire.spoil("*", *[passes] * number, held)
        with start("prune", *job.flags, "-keep", "1") as process:
            while process.poll() is None and not held.reached(0.02):
                pass
            process.kill()
        # A save whose marker is there is whole: nothing else of it went first.
        paths = set(job.place.paths())
        for step in (1, 2):
            if f"{job.path(step)}/trainer_state.json" in paths:
                assert f"{job.path(step)}/weights" in paths
        job.wire.heal()
        again = job.run("prune", "-keep", "1")
        assert (again.status, again.err) == (0, b"")
        assert sorted(job.place.paths()) == [
            f"{job.path(3)}/trainer_state.json",
            f"{job.path(3)}/weights",
            f"pub/{job.entry(3)}",
        ]
        if not held.reached(0):
            break
    assert number > 10
