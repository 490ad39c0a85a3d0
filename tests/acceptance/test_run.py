"""`publish run` around the real frameworks: one line starts the job, and starts it again."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.test_real_frameworks import DCP, EXAMPLES, HERE, HF, Framework
from tests.support.cli_job import publish
from tests.support.program import CLEAN, PROGRAM

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

# The first start is killed in the middle of the save of step 15, publish with it: it makes no final scan.
JOB = """
echo "resuming from [$DISPATCH_RESUME]"
mkdir -p "$DISPATCH_SAVES"
if [ -z "$DISPATCH_RESUME" ]; then
    "$PYTHON" "$JOB" --saves "$DISPATCH_SAVES" --until 20 --die-in-save 15
    until [ "$(ls "$ROOT/pub" | wc -l)" = 2 ]; do sleep 0.1; done
    kill -KILL "$PPID"
fi
exec "$PYTHON" "$JOB" --saves "$DISPATCH_SAVES" --until 20 --resume "$DISPATCH_RESUME"
"""


@pytest.fixture(params=[HF, DCP], ids=lambda framework: framework.name)
def framework(request: pytest.FixtureRequest) -> Framework:
    chosen: Framework = request.param
    return chosen


def run_job(root: Path, framework: Framework, *flags: str | Path) -> subprocess.CompletedProcess[str]:
    python = os.environ.get("PUBLISH_TEST_TORCH_PYTHON")
    if python is None:
        pytest.fail("PUBLISH_TEST_TORCH_PYTHON names no interpreter that has the frameworks; use make acceptance")
    line = [PROGRAM, "run", "-checkpoint", root, "-framework", framework.name, "-interval", "100ms", *flags, "--"]
    env = CLEAN | {
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(EXAMPLES),
        "HOME": str(root.parent),
        "ROOT": str(root),
        "PYTHON": str(Path(python).absolute()),
        "JOB": str(HERE / "jobs" / framework.job),
    }
    return subprocess.run([*line, "sh", "-c", JOB], env=env, capture_output=True, text=True, timeout=240, check=False)


def resumed(ended: subprocess.CompletedProcess[str]) -> str:
    return ended.stdout.partition("resuming from [")[2].partition("]")[0]


def test_one_line_starts_a_job_again_after_a_kill_and_goes_back(framework: Framework, tmp_path: Path) -> None:
    """run.1, run.2, begin.6, verify.3: what the frameworks write is whole"""
    root = tmp_path / "root"
    root.mkdir()
    killed = run_job(root, framework)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert resumed(killed) == ""
    (first,) = (root / "exec").iterdir()

    again = run_job(root, framework)
    assert again.returncode == 0, again.stderr
    assert resumed(again) == str(first / f"{framework.folder}10")
    (second,) = set((root / "exec").iterdir()) - {first}
    assert publish("resolve", "-checkpoint", root) == f"{second / framework.folder}20\n"

    back = run_job(root, framework, "-from", first / f"{framework.folder}5")
    assert back.returncode == 0, back.stderr
    assert resumed(back) == str(first / f"{framework.folder}5")
    (third,) = set((root / "exec").iterdir()) - {first, second}
    assert publish("resolve", "-checkpoint", root) == f"{third / framework.folder}20\n"
    assert (third / framework.weights).read_bytes() == (second / framework.weights).read_bytes()
