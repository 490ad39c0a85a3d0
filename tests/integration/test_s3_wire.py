"""The installed program on a real store, on a line that fails in every way: it never says what is not so."""

from __future__ import annotations

import re
import signal

import pytest

from tests.support.fault_proxy import Exchange, Fault
from tests.support.program import RETRYING, without_narration
from tests.support.s3_faults import BUSY, CONFLICT, FINAL, each_kind
from tests.support.s3_jobs import S3Job
from tests.support.wire_faults import (
    cut_in_headers,
    drips,
    lost_reply,
    lost_request,
    nothing_but_200,
    reset_in_headers,
    silence,
    truncated,
    truncated_unnoticed,
)

# The request had no effect, or it had its effect and the reply is lost.
LOST = {"lost request": lost_request, **BUSY, "empty 200": nothing_but_200}
UNHEARD = {"lost reply": lost_reply, "reset": reset_in_headers, "cut": cut_in_headers}


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
def test_a_put_that_was_not_applied_is_sent_again(fault: Fault, job: S3Job) -> None:
    """s3.8"""
    job.save(7)
    job.wire.spoil("PUT", fault)
    result = job.publish(7)
    assert (result.status, result.messages) == (0, [])
    (retry,) = result.retries
    assert retry.startswith(f"store: create pub/{job.entry(7)} failed, retrying for up to ")
    assert result.out.startswith(f"published {job.entry(7)} ".encode())
    assert job.published() == [7]
    assert len(job.wire.sent("PUT")) == 2


@pytest.mark.parametrize("fault", UNHEARD.values(), ids=UNHEARD)
def test_a_put_with_a_lost_response_is_reported_as_already_published(fault: Fault, job: S3Job) -> None:
    """s3.9"""
    job.save(7)
    job.wire.spoil("PUT", fault)
    result = job.publish(7)
    assert (result.status, result.out) == (0, b"")
    (message,) = result.messages
    assert "already" in message
    assert len(result.retries) == 1
    assert job.published() == [7]


@pytest.mark.parametrize("conflicts", [1, 2, 3])
def test_a_put_is_sent_up_to_four_times_on_conflicts(conflicts: int, job: S3Job) -> None:
    """s3.10"""
    job.save(7)
    job.wire.spoil("PUT", *[CONFLICT] * conflicts)
    assert job.publish(7).status == 0
    assert job.published() == [7]
    assert len(job.wire.sent("PUT")) == conflicts + 1


def test_a_fourth_conflict_fails_the_publication(job: S3Job) -> None:
    """s3.10"""
    job.save(7)
    job.wire.spoil("PUT", *[CONFLICT] * 4)
    result = job.publish(7)
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith("store: ")
    assert "ConditionalRequestConflict" in result.notes[0]
    assert job.published() == []
    assert len(job.wire.sent("PUT")) == 4


@pytest.mark.parametrize(("fault", "word"), FINAL.values(), ids=FINAL)
def test_a_final_response_to_a_put_is_reported_and_nothing_is_published(fault: Fault, word: str, job: S3Job) -> None:
    """s3.8, s3.12, s3.13"""
    job.save(7)
    job.wire.spoil_all("PUT", fault)
    result = job.publish(7)
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith("store: ")
    assert word in result.notes[0]
    assert job.published() == []
    assert len(job.wire.sent("PUT")) == 1


@pytest.mark.parametrize("fault", [silence, drips], ids=["silence", "a byte a second"])
@pytest.mark.parametrize("verb", ["publish", "resolve"])
def test_the_timeout_is_wall_clock_time(fault: Fault, verb: str, job: S3Job) -> None:
    """s3.11: the step and the limit are named."""
    job.save(7)
    job.record(6)
    job.wire.spoil_all("PUT" if verb == "publish" else "GET", fault)
    result = job.publish(7, "-timeout", "3s") if verb == "publish" else job.run("resolve", "-timeout", "3s")
    assert (result.status, result.out) == (1, b"")
    step = f"create pub/{job.entry(7)}" if verb == "publish" else "list pub/"
    assert result.notes == [f"store: {step}: out of time (-timeout 3s)"]


BROKEN = {
    **LOST,
    **UNHEARD,
    "truncated": truncated,
    "truncated unnoticed": truncated_unnoticed,
}


@pytest.mark.parametrize("fault", each_kind(BROKEN))
def test_a_failed_list_is_sent_again(fault: Fault, job: S3Job) -> None:
    """resolve.1, s3.8: never a false "nothing published"."""
    job.record(6, 7)
    job.wire.spoil("GET", fault, fault)
    result = job.run("resolve")
    assert (result.status, result.out, result.messages) == (0, f"{job.url(7)}\n".encode(), [])
    # Two faults in a row are reported once.
    assert len(result.retries) == 1
    assert len(job.wire.asked) == 3


@pytest.mark.parametrize(("fault", "word"), FINAL.values(), ids=FINAL)
def test_a_final_response_to_a_list_is_reported_and_stdout_stays_empty(fault: Fault, word: str, job: S3Job) -> None:
    """resolve.3"""
    job.record(6, 7)
    job.wire.spoil_all("GET", fault)
    result = job.run("resolve")
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith("store: ")
    assert word in result.notes[0]
    assert len(job.wire.asked) == 1


@pytest.mark.parametrize("fault", [nothing_but_200, truncated], ids=["empty 200", "truncated"])
def test_a_list_that_never_succeeds_is_not_an_empty_log(fault: Fault, job: S3Job) -> None:
    """resolve.3"""
    job.record(6)
    job.wire.spoil_all("GET", fault)
    result = job.run("resolve", "-timeout", "2s")
    assert (result.status, result.out) == (1, b"")
    assert len(result.retries) == 1
    (message,) = result.messages
    assert "out of time" in message


WATCHED = {
    "GET": {**BUSY, "lost": lost_request, "reset": reset_in_headers, "truncated": truncated},
    "PUT": {**LOST, **UNHEARD, "conflict": CONFLICT},
}


@pytest.mark.parametrize(
    ("method", "fault"), [case for method, faults in WATCHED.items() for case in each_kind(faults, method)]
)
def test_a_watch_publishes_each_save_once_on_a_bad_network(method: str, fault: Fault, job: S3Job) -> None:
    """watch.1, s3.8, s3.9: whatever is met, at the start, in a scan and on the way out."""
    job.save(1)
    job.wire.spoil(method, fault)
    with job.watch("-interval", "1h") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # The first scan is over when it has said something of its only save.
        first = process.stdout.readline() if fault not in UNHEARD.values() or method == "GET" else b""
        heard = (line for line in process.stderr if RETRYING.encode() not in line and without_narration(line))
        first_note = b"" if first else next(heard)
        job.save(2)
        job.wire.spoil(method, fault)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    lines = (first + out).splitlines()
    messages = [line for line in without_narration(first_note + err).splitlines() if RETRYING.encode() not in line]
    assert len(lines) + len(messages) == 2
    assert all(b"already" in message for message in messages)
    assert job.published() == [1, 2]


PRUNED = {**BUSY, "lost request": lost_request, "lost reply": lost_reply, "reset": reset_in_headers}


@pytest.mark.parametrize("fault", each_kind(PRUNED))
def test_a_prune_on_a_bad_network_ends_like_one_on_a_good_network(fault: Fault, job: S3Job) -> None:
    """prune.1, s3.8"""
    for step in (1, 2, 3):
        job.save(step, "weights", "optimizer")
    job.record(1, 2, 3)
    for method in ("GET", "PUT", "POST", "DELETE"):
        job.wire.spoil(method, fault)
    result = job.run("prune", "-keep", "1")
    assert (result.status, result.messages) == (0, [])
    assert result.out.splitlines() == [f"removed {job.url(step)}".encode() for step in (1, 2)]
    assert job.published() == [3]
    assert {path.split("/")[2] for path in job.place.paths() if path.startswith("exec/")} == {"checkpoint-3"}
    assert not [path for path in job.place.paths() if path.startswith("prune/")]


@pytest.mark.parametrize("fault", each_kind(BUSY))
def test_a_prune_that_cannot_look_whether_a_save_is_gone_looks_again_and_says_so(fault: Fault, job: S3Job) -> None:
    """prune.1: tried again from the start, the removal would find nothing and say nothing."""
    for step in (1, 2):
        job.save(step, "weights")
    job.record(1, 2)
    job.wire.spoil("GET", fault, part="max-keys=1")
    result = job.run("prune", "-keep", "1")
    assert (result.status, result.out) == (0, f"removed {job.url(1)}\n".encode())
    assert job.wire.sent("GET", "max-keys=1")
    assert {path.split("/")[2] for path in job.place.paths() if path.startswith("exec/")} == {"checkpoint-2"}


@pytest.mark.parametrize("text", ["", "soon", "Wed, 02 Dec 2026 20:00:00 GMT", "0000-12-02T20:00:00Z"])
def test_a_time_that_s3_does_not_send_is_reported(text: str, job: S3Job) -> None:
    """s3.6, log.1"""
    job.record(1)

    def spoiled(exchange: Exchange) -> None:
        reply = exchange.forward()
        body = re.sub(rb"<LastModified>[^<]*", b"<LastModified>" + text.encode(), reply.body)
        exchange.answer(reply._replace(body=body))

    job.wire.spoil("GET", spoiled)
    result = job.run("log")
    assert (result.status, result.out) == (1, b"")
    (note,) = result.notes
    assert note.startswith("store: LIST ")
    assert "LastModified" in note


def test_repeated_slow_downs_are_waited_out(job: S3Job) -> None:
    """s3.8"""
    job.record(1)
    job.wire.spoil("GET", *[BUSY["503"]] * 5)
    assert job.run("resolve").out == f"{job.url(1)}\n".encode()
