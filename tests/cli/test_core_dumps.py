"""Secrets in memory stay there."""

from __future__ import annotations

import subprocess
import sys

import pytest

_MAIN = """
import ctypes, sys, time
from publish.cli.app import main
from publish.cli.output import Output
main(sys.argv[1:], {}, Output(), time.monotonic())
sys.stdout.write(str(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))
"""


@pytest.mark.parametrize(
    ("arguments", "dumpable"),
    [
        (["-checkpoint", "s3://bucket/run", "-creds", "secret:/nonexistent"], "0"),
        (["-checkpoint", "/nonexistent"], "1"),
    ],
)
def test_a_process_that_reads_credentials_leaves_no_core_dump(arguments: list[str], dumpable: str) -> None:
    """cli.10: prctl(PR_GET_DUMPABLE) is 0 once credentials are looked for."""
    done = subprocess.run([sys.executable, "-c", _MAIN, "resolve", *arguments], capture_output=True, check=False)
    assert done.stdout.decode() == dumpable, done.stderr
