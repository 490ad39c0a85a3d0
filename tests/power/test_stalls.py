"""`run` on a filesystem that stops answering, as an NFS mount whose server is gone."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.program import start
from tests.support.run_jobs import TRAINING, run_line
from tests.support.strict_fs import StrictMount
from tests.support.strict_model import Model

pytestmark = pytest.mark.power


@pytest.mark.parametrize(("status", "expected"), [("0", 1), ("7", 7)])
def test_the_training_goes_on_and_the_job_ends_in_time(strict_mount: StrictMount, status: str, expected: int) -> None:
    """run.3, run.5, cli.3: what the command did counts, unless it succeeded and its saves are not published"""
    strict_mount.load(Model())
    words = [*run_line(strict_mount.path, "-timeout", "1s"), "sh", "-c", TRAINING + "read line; echo on; exit $STATUS"]
    env = {"STEPS": "1", "STATUS": status}
    with start(*words, env=env, stdin=subprocess.PIPE, cwd="/") as process:
        assert process.stderr is not None
        while b"published " not in process.stderr.readline():
            pass
        with strict_mount.stalled():
            out, err = process.communicate(b"\n", timeout=60)
    assert out == b"on\n"
    assert b"out of time (-timeout 1s)" in err
    assert process.returncode == expected
