"""Secrets in memory stay there."""

from __future__ import annotations

import subprocess
import sys

import pytest

_MAIN = """
import ctypes, resource, sys, time
resource.setrlimit(resource.RLIMIT_CORE, (4096, 8192))
from publish.cli.app import main
from publish.cli.output import Output
main(sys.argv[1:], {}, Output(), time.monotonic())
sys.stdout.write(str((ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))))
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-checkpoint", "s3://bucket/run", "-creds", "secret:/nonexistent"], (0, 0, 8192)),
        (["-checkpoint", "/nonexistent"], (1, 4096, 8192)),
    ],
)
def test_a_process_that_reads_credentials_leaves_no_core_dump(
    arguments: list[str], expected: tuple[int, int, int]
) -> None:
    """cli.10: prctl(PR_GET_DUMPABLE) and the soft RLIMIT_CORE are 0 once credentials are looked for."""
    done = subprocess.run([sys.executable, "-c", _MAIN, "resolve", *arguments], capture_output=True, check=False)
    assert done.stdout.decode() == str(expected), done.stderr


_CHILD = """
import resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_CORE, (4096, 8192))
from publish.adapters.process_memory import DumpsForbidden
dumps = DumpsForbidden()
read = "import ctypes, resource; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), resource.getrlimit(4))"
with dumps.lifted():
    subprocess.run([sys.executable, "-c", read], check=True)
print(resource.getrlimit(resource.RLIMIT_CORE))
"""


def test_a_child_has_the_limits_that_publish_was_given() -> None:
    """cli.10"""
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == ["1 (4096, 8192)", "(0, 8192)"]
