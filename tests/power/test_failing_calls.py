"""A directory whose calls fail, as a real one's may: a sync never fails unseen, and what passes is tried again."""

from __future__ import annotations

import errno

import pytest

from tests.power.test_power_loss import prune, publish, watch
from tests.support.power import ERR, OUT, Laboratory, Recording, filesystem, words_on
from tests.support.power_trees import entry, published, save_files
from tests.support.strict_calls import Fault
from tests.support.strict_model import Model

pytestmark = pytest.mark.power

FOREVER = 1 << 30
RETRYING = b" failed, retrying for up to "
SYNCED = {"the entry": entry(1), "the log": b"pub", "the root": b"root"}


def one_save() -> Model:
    return filesystem(save_files(1))


def words(recording: Recording) -> tuple[bytes, bytes]:
    return words_on(recording.ended(), OUT), words_on(recording.ended(), ERR)


@pytest.mark.parametrize("name", SYNCED.values(), ids=SYNCED)
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EPERM, errno.EACCES], ids=errno.errorcode.get)
def test_a_sync_that_fails_is_a_failure(laboratory: Laboratory, name: bytes, number: int) -> None:
    """data.5: EPERM and EACCES as well."""
    fault = Fault("fsync", name, number, FOREVER)
    recording = laboratory.record(one_save(), *publish(laboratory, 1), faults=[fault])
    out, err = words(recording)
    assert recording.statuses == (1,)
    assert out == b""
    assert err.startswith(b"publish: ")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def test_a_filesystem_without_syncs_is_named_once(laboratory: Laboratory, number: int) -> None:
    """data.3."""
    faults = [Fault("fsync", name, number, FOREVER) for name in SYNCED.values()]
    recording = laboratory.record(one_save(), *publish(laboratory, 1), faults=faults)
    out, err = words(recording)
    assert recording.statuses == (0,)
    assert out.startswith(b"published ")
    assert err.count(b"\n") == 1


def test_a_taken_name_that_is_refused_otherwise_is_taken(laboratory: Laboratory) -> None:
    """nfs.7: on sshfs the loser of a race may get EPERM; here it has just looked, and seen nothing."""
    # No other test has this step, so the kernel has not seen the name before.
    step = 77
    before = filesystem(save_files(step), published(step))
    faults = [Fault("getattr", entry(step), errno.ENOENT, 1), Fault("create", entry(step), errno.EPERM, 1)]
    recording = laboratory.record(before, *publish(laboratory, step), faults=faults)
    assert recording.statuses == (0,)
    assert words(recording)[1].startswith(b"publish: already published")


PASSING = [errno.ESTALE, errno.ETIMEDOUT, errno.EIO, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE]
STATE = b"trainer_state.json"
# What a scan does besides creating the entry.
LOOKS = {
    "the saves are listed": ("opendir", b"a"),
    "the names of the saves come": ("readdir", b"a"),
    "the marker is looked for": ("getattr", STATE),
    "the marker is opened": ("open", STATE),
    "the marker is read": ("read", STATE),
    "the save is looked at": ("opendir", b"checkpoint-1"),
    "the log is listed": ("opendir", b"pub"),
}


@pytest.mark.parametrize("number", PASSING, ids=errno.errorcode.get)
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_watch_tries_again_what_passes(laboratory: Laboratory, look: tuple[str, bytes], number: int) -> None:
    """nfs.6"""
    before = filesystem(save_files(1), save_files(2), published(2))
    until = b"published " + entry(1)
    recording = laboratory.record_watch(before, *watch(laboratory), until=until, faults=[Fault(*look, number, 3)])
    assert recording.statuses == (0,)
    # What is stale is looked up afresh first (nfs.2).
    assert number == errno.ESTALE or RETRYING in words(recording)[1]


@pytest.mark.parametrize("number", [number for number in PASSING if number != errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["create", "mkdir"])
def test_a_watch_tries_to_create_again_what_passes(laboratory: Laboratory, call: str, number: int) -> None:
    """nfs.6"""
    fault = Fault(call, entry(1) if call == "create" else b"pub", number, 3)
    until = b"published " + entry(1)
    recording = laboratory.record_watch(one_save(), *watch(laboratory), until=until, faults=[fault])
    assert recording.statuses == (0,)
    assert RETRYING in words(recording)[1]


@pytest.mark.parametrize("number", PASSING, ids=errno.errorcode.get)
def test_a_fault_that_does_not_pass_ends_the_final_scan_in_time(laboratory: Laboratory, number: int) -> None:
    """nfs.6, nfs.5: its message names what failed, and the limit that was set."""
    words_ = [*watch(laboratory), "-timeout", "1s"]
    fault = Fault("opendir", b"a", number, FOREVER)
    recording = laboratory.record_watch(one_save(), *words_, until=RETRYING, faults=[fault])
    assert recording.statuses == (1,)
    out, err = words(recording)
    assert out == b""
    assert b"list exec/a/: out of time (-timeout 1s): " in err


@pytest.mark.parametrize("number", PASSING, ids=errno.errorcode.get)
@pytest.mark.parametrize("verb", ["publish", "prune", "resolve"])
def test_other_verbs_try_again_what_is_stale(laboratory: Laboratory, verb: str, number: int) -> None:
    """nfs.6: and nothing else."""
    lines = {
        "publish": publish(laboratory, 1),
        "prune": prune(laboratory),
        "resolve": ["resolve", "-checkpoint", laboratory.root],
    }
    before = filesystem(save_files(1), save_files(2), published(2))
    recording = laboratory.record(before, *lines[verb], faults=[Fault("opendir", b"pub", number, 3)])
    assert recording.statuses == (0 if number == errno.ESTALE else 1,)


def test_a_stale_handle_that_stays_ends_another_verb_after_ten_seconds(laboratory: Laboratory) -> None:
    """nfs.6, cli.3: `-timeout` bounds no verb but a watch on a directory, so the message does not name it."""
    words_ = ["resolve", "-checkpoint", laboratory.root, "-timeout", "1s"]
    fault = Fault("opendir", b"pub", errno.ESTALE, FOREVER)
    recording = laboratory.record(filesystem(save_files(1), published(1)), *words_, faults=[fault])
    assert recording.statuses == (1,)
    out, err = words(recording)
    assert out == b""
    assert b"list pub/: out of time (tried again for 10s): " in err
    assert b"-timeout" not in err


def test_a_sync_that_failed_is_not_tried_again(laboratory: Laboratory) -> None:
    """nfs.6, fsync(2): after EIO the pages count as clean, so a second sync would lie."""
    fault = Fault("fsync", b"pub", errno.EIO, 1)
    recording = laboratory.record(one_save(), *publish(laboratory, 1), faults=[fault])
    assert recording.statuses == (1,)


@pytest.mark.parametrize("name", [STATE, b"pub", b"root"])
def test_a_sync_that_failed_ends_a_watch(laboratory: Laboratory, name: bytes) -> None:
    """nfs.6, data.3: it is not taken for a fault that passes."""
    recording = laboratory.record(one_save(), *watch(laboratory), faults=[Fault("fsync", name, errno.EIO, 1)])
    assert recording.statuses == (1,)
    assert words(recording)[0] == b""


def test_run_publishes_the_next_save_and_fails_at_its_end(laboratory: Laboratory) -> None:
    """data.3, run.3: the save that the disk lost is not published, although each later sync of it succeeds"""
    script = """
        until grep -q 'a scan failed' "$1/../words/err"; do sleep 0.01; done
        mkdir "$DISPATCH_SAVES/checkpoint-2"
        echo '{"global_step": 2}' >"$DISPATCH_SAVES/checkpoint-2/trainer_state.json"
        until grep -q ' step 2,' "$1/../words/err"; do sleep 0.01; done
    """
    line = ["run", "-checkpoint", laboratory.root, "-framework", "hf", "-attempt", "a", "-interval", "20ms", "--"]
    fault = Fault("fsync", b"weights", errno.EIO, 1)
    recording = laboratory.record(one_save(), *line, "sh", "-c", script, "sh", laboratory.root, faults=[fault])
    assert recording.statuses == (1,)
    said = words(recording)[1]
    assert b"published " + entry(2) in said
    assert b"published " + entry(1) not in said
    assert b"/weights: Input/output error; not published until it is saved anew: exec/a/checkpoint-1\n" in said
    assert said.endswith(b"publish: run: the last scan failed\n")
