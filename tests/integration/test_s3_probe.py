"""The installed program's probe on a real store, and on that store made worse by the wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from publish.domain.probe import ROUNDS, WRITERS
from tests.support.fault_proxy import Fault, passes
from tests.support.racy_store import RacyPut
from tests.support.s3_jobs import S3Job, s3_job
from tests.support.servers import S3Server
from tests.support.variants import SERVERS
from tests.support.wire_faults import lost_reply, says, silence, unconditional

OBJECT = "publish-probe-"
RACE = "-race"
DENIED = says(403, "AccessDenied")


@pytest.fixture(params=SERVERS)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[S3Job]:
    server: S3Server = request.getfixturevalue(request.param)
    with s3_job(server, tmp_path) as job:
        job.record(1, 2)
        yield job


def left(job: S3Job) -> list[str]:
    return [path for path in job.place.paths() if not path.startswith("pub/")]


def test_a_conforming_store_passes_and_root_and_source_are_printed(job: S3Job) -> None:
    """probe.2, probe.3, probe.4"""
    result = job.run("probe")
    assert (result.status, result.err) == (0, b"")
    assert job.place.url.encode() in result.out
    assert job.flags[-1].encode() in result.out
    assert left(job) == []
    assert job.published() == [1, 2]


def test_under_resolve_the_probes_line_goes_to_stderr(job: S3Job) -> None:
    """probe.4, resolve.1, resolve.2: the probe first."""
    result = job.run("resolve", "-probe")
    assert (result.status, result.out) == (0, f"{job.url(2)}\n".encode())
    (note,) = result.notes
    assert job.place.url in note
    assert job.wire.asked[0].method == "PUT"
    assert job.wire.asked[-1].query["prefix"].endswith("/pub/")


@pytest.mark.parametrize("part", [OBJECT, RACE], ids=["one after another", "at once"])
def test_a_store_that_ignores_the_condition_fails(part: str, job: S3Job) -> None:
    """probe.2, probe.3"""
    job.wire.spoil_all("PUT", unconditional, part=part)
    result = job.run("probe")
    assert (result.status, result.out) == (1, b"")
    (note,) = result.notes
    assert note.startswith("store: probe: conditional write: the store does not honour conditional writes")
    assert ("writers race" in note) == (part == RACE)
    assert left(job) == []


RUNS = [5, pytest.param(50, marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("runs", RUNS)
def test_a_store_with_a_window_of_a_millisecond_is_always_found(runs: int, moto: S3Server, tmp_path: Path) -> None:
    """probe.3"""
    with s3_job(moto, tmp_path) as job:
        job.wire.spoil_all("PUT", RacyPut(), part=RACE)
        found = 0
        for _ in range(runs):
            result = job.run("probe")
            found += result.status == 1 and "when writers race" in result.notes[0]
        assert found == runs
        assert left(job) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("server", "runs"), [("moto", 5), pytest.param("seaweedfs", 20, marks=pytest.mark.exhaustive)])
def test_a_right_store_is_never_suspected(
    server: str, runs: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """probe.3"""
    with s3_job(request.getfixturevalue(server), tmp_path) as job:
        assert [job.run("probe").status for _ in range(runs)] == [0] * runs


def test_the_writers_race_on_connections_that_have_carried_a_request(job: S3Job) -> None:
    """probe.3: as many connections as writers in all, each of which was opened for a read."""
    assert job.run("probe").status == 0
    races = [number for number, asked in enumerate(job.wire.asked) if RACE in asked.target and asked.method == "PUT"]
    assert len(races) == ROUNDS * WRITERS
    assert len([asked for asked in job.wire.asked[: races[0]] if asked.method == "GET"]) >= WRITERS
    assert job.wire.connections == WRITERS


STEPS: dict[str, tuple[str, str, tuple[Fault, ...]]] = {
    "write": ("PUT", OBJECT, (DENIED,)),
    "read": ("GET", OBJECT, (DENIED,)),
    "conditional write": ("PUT", OBJECT, (passes, DENIED)),
    "list": ("GET", "list-type", (DENIED,)),
    "delete": ("DELETE", OBJECT, (DENIED,)),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("verb", ["probe", "resolve"])
def test_a_failed_step_is_named_and_its_objects_are_removed(step: str, verb: str, job: S3Job) -> None:
    """probe.1, probe.4, resolve.3"""
    method, part, faults = STEPS[step]
    job.wire.spoil(method, *faults, part=part)
    result = job.run(verb, *["-probe"] * (verb == "resolve"))
    assert (result.status, result.out) == (1, b"")
    (note,) = result.notes
    assert note.startswith(f"store: probe: {step}: ")
    assert "AccessDenied" in note
    assert left(job) == []


def test_an_unrecognised_entry_fails_the_list(job: S3Job) -> None:
    """layout.4"""
    job.place.fill("pub/README")
    result = job.run("probe")
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith("store: probe: list: ")
    assert "README" in result.notes[0]
    assert left(job) == []


@pytest.mark.parametrize(
    "faults",
    [[lost_reply], [lost_reply] * 3, [says(500)] * 5, [says(409, "ConditionalRequestConflict")] * 7],
    ids=["lost reply", "lost replies", "500 for losers", "409 for losers"],
)
def test_a_race_on_a_bad_network_still_has_one_winner(faults: list[Fault], job: S3Job) -> None:
    """probe.4"""
    job.wire.spoil("PUT", *faults, part=RACE)
    result = job.run("probe")
    assert (result.status, result.messages) == (0, [])
    assert left(job) == []


def test_a_probe_that_runs_out_of_time_names_its_step(job: S3Job) -> None:
    """s3.11"""
    job.wire.spoil_all("PUT", silence, part=RACE)
    result = job.run("probe", "-timeout", "4s")
    assert (result.status, result.out) == (1, b"")
    assert result.notes == ["store: probe: conditional write: out of time (-timeout 4s)"]
