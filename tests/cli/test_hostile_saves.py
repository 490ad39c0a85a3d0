"""verify.5 with the installed program: a hostile save is judged within little memory and time."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.hostile_pickles import ATTACKS
from tests.support.program import CLEAN, PROGRAM

MEMORY = 512 * 2**20
SECONDS = 20


def limit() -> None:
    """setrlimit(2): an allocation beyond the first fails, and the kernel ends who needs more time than the second."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_save_is_judged_within_limits(tmp_path: Path, name: str) -> None:
    """verify.5: Python's own unpickler takes 619 MB for one, crashes on another and never ends with a third."""
    (tmp_path / "step-5").mkdir()
    (tmp_path / "step-5/.metadata").write_bytes(b"\x80\x04" + ATTACKS[name] + b".")
    ended = subprocess.run(
        [PROGRAM, "verify", "-checkpoint", tmp_path, tmp_path / "step-5"],
        env=CLEAN, capture_output=True, preexec_fn=limit, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stdout.startswith(b"broken %s: .metadata: " % bytes(tmp_path / "step-5"))
    assert ended.stderr == b"publish: verify: broken saves: 1\n"
