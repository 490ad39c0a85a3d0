"""A watch whose credentials are refused: in each kind of request it sends, and for real."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.fault_proxy import Fault
from tests.support.private_files import write_private_directory
from tests.support.program import start, without_narration
from tests.support.s3_jobs import S3Job, s3_job
from tests.support.servers import KeyedServer
from tests.support.wire_faults import says

REJECTED = "the store rejected the credentials ({}); resolving the sources again"
EXPIRED = says(400, "ExpiredToken")


# A request that the second scan sends: its method and target, and the refusals that the wire gives.
REQUESTS: dict[str, tuple[str, list[tuple[str, str, Fault]]]] = {
    "list": ("hf", [("GET", "delimiter", EXPIRED)]),
    "get": ("hf", [("GET", "trainer_state.json", EXPIRED)]),
    "head": ("dcp", [("HEAD", ".metadata", says(400)), ("GET", ".metadata", EXPIRED)]),
    "put": ("hf", [("PUT", "pub/", EXPIRED)]),
    "the list that comes first": ("hf", [("GET", "prefix", EXPIRED)]),
}


@pytest.mark.parametrize("request_", REQUESTS)
def test_each_rejected_request_is_sent_once_more_with_fresh_credentials(request_: str, job: S3Job) -> None:
    """s3.12"""
    framework, refusals = REQUESTS[request_]
    job.save(1)
    job.place.fill("exec/a/checkpoint-1/.metadata")
    for method, part, fault in refusals:
        job.wire.spoil(method, fault, part=part)
    words = ("-framework", framework, "-epoch", "1", "-attempt", "a", "-interval", "1h")
    with start("watch", *job.flags, *words) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"published ")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    notes = without_narration(err).decode().splitlines()
    assert notes[0] == "publish: " + REJECTED.format("ExpiredToken")
    assert len(notes) == 2
    assert job.flags[-1] in notes[1]
    assert job.published() == [1]


def test_a_watch_refreshes_as_often_as_necessary(job: S3Job) -> None:
    """s3.12: once for each refused request."""
    job.save(1)
    for part in ("delimiter", "trainer_state.json"):
        job.wire.spoil("GET", EXPIRED, part=part)
    job.wire.spoil("PUT", EXPIRED)
    with job.watch("-interval", "1h") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"published ")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err.decode().count("resolving the sources again") == 3


def test_a_request_that_is_rejected_twice_ends_the_watch(job: S3Job) -> None:
    """s3.12"""
    job.save(1)
    job.wire.spoil("PUT", EXPIRED, EXPIRED)
    with job.watch("-interval", "1h") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, b"")
    assert err.decode().splitlines()[-1].startswith("publish: store: ")
    assert len(job.wire.sent("PUT")) == 2
    assert job.published() == []


@pytest.mark.parametrize("code", ["SignatureDoesNotMatch", "InvalidToken", "TokenRefreshRequired"])
def test_other_rejections_are_final_if_the_credentials_are_unchanged(code: str, job: S3Job) -> None:
    """watch.11: a subPath mount is never updated."""
    job.save(1)
    job.wire.spoil("PUT", says(403, code))
    with job.watch("-interval", "1h") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, b"")
    assert REJECTED.format(code) in err.decode()
    assert f"the credentials of {job.flags[-1]} are unchanged" in err.decode()
    assert len(job.wire.sent("PUT")) == 1


@pytest.mark.parametrize("code", ["SignatureDoesNotMatch", "InvalidToken", "TokenRefreshRequired"])
def test_other_rejections_are_sent_once_more_with_other_credentials(
    code: str, seaweedfs: KeyedServer, tmp_path: Path
) -> None:
    """watch.11: after a rotation, from a mounted Secret"""
    with s3_job(seaweedfs, tmp_path) as job:
        job.save(1)
        with job.watch("-interval", "1h") as process:
            assert process.stdout is not None
            assert b"step 1, " in process.stdout.readline()
            write_private_directory(tmp_path / "creds", seaweedfs.add_key()._asdict())
            job.save(2)
            job.wire.spoil("PUT", says(403, code))
            process.terminate()
            out, err = process.communicate()
        assert process.returncode == 0
        assert b"step 2, " in out
        assert without_narration(err).decode().splitlines() == [
            f"publish: {REJECTED.format(code)}",
            f"publish: now using credentials from file:{tmp_path}/creds",
        ]
        assert job.published() == [1, 2]


def test_a_code_that_fresh_credentials_do_not_cure_is_final(job: S3Job) -> None:
    """s3.12, watch.11"""
    job.save(1)
    job.wire.spoil("PUT", says(403, "AccessDenied"))
    with job.watch("-interval", "1h") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, b"")
    assert b"resolving" not in err
    assert len(job.wire.sent("PUT")) == 1
