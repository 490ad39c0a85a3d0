"""A directory whose calls fail, as a real one's may: a sync never fails unseen, and what passes is tried again."""

from __future__ import annotations

import errno

import pytest

from tests.power.test_power_loss import publish, watch
from tests.support.power import ERR, OUT, Laboratory, Recording, filesystem, words_on
from tests.support.power_trees import entry, published, save_files
from tests.support.strict_calls import Fault
from tests.support.strict_model import Model

pytestmark = pytest.mark.power

FOREVER = 1 << 30
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


@pytest.mark.parametrize("number", PASSING, ids=errno.errorcode.get)
def test_a_watch_tries_again_what_passes(laboratory: Laboratory, number: int) -> None:
    """nfs.6: the folder of the saves cannot be listed for a moment."""
    fault = Fault("opendir", b"a", number, 3)
    until = b"published " + entry(1)
    recording = laboratory.record_watch(one_save(), *watch(laboratory), until=until, faults=[fault])
    assert recording.statuses == (0,)


def test_a_sync_that_failed_is_not_tried_again(laboratory: Laboratory) -> None:
    """nfs.6, fsync(2): after EIO the pages count as clean, so a second sync would lie."""
    fault = Fault("fsync", b"pub", errno.EIO, 1)
    recording = laboratory.record(one_save(), *publish(laboratory, 1), faults=[fault])
    assert recording.statuses == (1,)
