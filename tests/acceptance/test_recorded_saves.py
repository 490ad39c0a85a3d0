"""The frameworks' saves are made anew, recorded with strace, and replayed as the recordings in tests/samples are.

`PUBLISH_TEST_RECORD=1` also writes what was recorded over those in tests/samples.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.domain.test_recorded_saves import RECORDED, RECORDINGS, check_replay
from tests.support.recording import store
from tests.support.strace import record

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]

JOBS = Path(__file__).parent / "jobs"


@pytest.mark.parametrize(("job", "framework", "saves"), RECORDED, ids=str)
def test_a_framework_of_today_saves_as_its_recording_says(
    job: str, framework: str, saves: list[str], tmp_path: Path
) -> None:
    """watch.2"""
    python = os.environ.get("PUBLISH_TEST_TORCH_PYTHON")
    if python is None:
        pytest.fail("PUBLISH_TEST_TORCH_PYTHON names no interpreter that has the frameworks; use make acceptance")
    folder = tmp_path / "training/saves"
    folder.mkdir(parents=True)
    script = ["orbax_saves.py"] if job == "orbax" else ["torch_saves.py", job]
    # On another filesystem than the saves, as on a node whose saves go to a shared folder.
    elsewhere = "/dev/shm" if Path("/dev/shm").is_dir() else str(tmp_path)
    env = {"PATH": os.defpath, "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "TMPDIR": elsewhere}
    operations = record([python, JOBS / script[0], *script[1:], folder], folder, tmp_path, env)
    if os.environ.get("PUBLISH_TEST_RECORD"):
        store(RECORDINGS / f"{job}.jsonl.gz", operations)
    check_replay(operations, framework, saves, tmp_path / "replayed")
