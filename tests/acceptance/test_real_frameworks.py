"""The main job with the real frameworks: killed in the middle of a save, resumed, pruned.

The jobs in `jobs/` run with the interpreter that `make acceptance` prepares and names.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.cli_job import publish, watching
from tests.support.program import CLEAN, PROGRAM

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


class Framework(NamedTuple):
    """`weights`: the file whose bytes tell whether two runs ended alike, relative to the saves."""

    name: str
    job: str
    folder: str
    marker: str
    weights: str


HF = Framework("hf", "hf_job.py", "checkpoint-", "trainer_state.json", "checkpoint-20/model.safetensors")
DCP = Framework("dcp", "dcp_job.py", "step-", ".metadata", "weights.pt")


@pytest.fixture(params=[HF, DCP], ids=lambda framework: framework.name)
def framework(request: pytest.FixtureRequest) -> Framework:
    chosen: Framework = request.param
    return chosen


def train(
    framework: Framework, saves: Path, *arguments: str | Path, until: int = 20
) -> subprocess.CompletedProcess[str]:
    """Trains, saving every 5 steps."""
    python = os.environ.get("PUBLISH_TEST_TORCH_PYTHON")
    if python is None:
        pytest.fail("PUBLISH_TEST_TORCH_PYTHON names no interpreter that has the frameworks; use make acceptance")
    saves.mkdir(parents=True)
    command = [python, HERE / "jobs" / framework.job, "--saves", saves, "--until", str(until), *arguments]
    path = f"{Path(PROGRAM).parent}:{CLEAN['PATH']}"
    offline = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(EXAMPLES), "PATH": path, "HOME": str(saves.parent)}
    return subprocess.run(command, env=offline, capture_output=True, text=True, timeout=240, check=False)


def expect_trained(ended: subprocess.CompletedProcess[str], until: int = 20) -> None:
    assert ended.returncode == 0, ended.stderr
    assert f"trained to step {until}" in ended.stdout


def expect_killed(ended: subprocess.CompletedProcess[str]) -> None:
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def all_but_the_marker(save: Path, framework: Framework) -> set[str]:
    """That the kill landed where it should: everything is there but what makes the save whole."""
    return {file.name for file in save.iterdir()} - {framework.marker, f"{framework.marker}.tmp"}


def test_a_job_killed_in_the_middle_of_a_save_resumes_and_ends_as_if_nothing_had_happened(
    framework: Framework, tmp_path: Path
) -> None:
    """watch.1, watch.2, watch.6, resolve.1, prune.1; layout.6: the higher epoch is the newer execution."""
    root = tmp_path / "root"
    first, second = root / "exec" / "try-1", root / "exec" / "try-2"
    root.mkdir()
    assert publish("resolve", "-checkpoint", root) == ""

    with watching(root, framework.name, 1, "try-1") as watch:
        expect_killed(train(framework, first, "--die-in-save", "15"))
        # The watch outlived the job, so its final scan saw the half save.
        said = watch.stop()
    assert [line.split(", ")[1] for line in said.splitlines()] == ["step 5", "step 10"]
    half = first / f"{framework.folder}15"
    resume = publish("resolve", "-checkpoint", root).removesuffix("\n")
    assert resume == str(first / f"{framework.folder}10")

    with watching(root, framework.name, 2, "try-2") as watch:
        expect_trained(train(framework, second, "--resume", resume))
        said = watch.stop()
    assert [line.split(", ")[1] for line in said.splitlines()] == ["step 15", "step 20"]
    last = second / f"{framework.folder}20"
    assert publish("resolve", "-checkpoint", root) == f"{last}\n"

    uninterrupted = tmp_path / "uninterrupted"
    expect_trained(train(framework, uninterrupted))
    assert (second / framework.weights).read_bytes() == (uninterrupted / framework.weights).read_bytes()
    assert all_but_the_marker(half, framework) == all_but_the_marker(uninterrupted / half.name, framework)

    removed = publish("prune", "-checkpoint", root, "-keep", "1").splitlines()
    gone = [first / f"{framework.folder}5", first / f"{framework.folder}10", second / f"{framework.folder}15"]
    assert sorted(removed) == sorted(f"removed {save}" for save in gone)
    assert not any(save.exists() for save in gone)
    assert publish("resolve", "-checkpoint", root) == f"{last}\n"
    expect_trained(train(framework, root / "exec" / "try-3", "--resume", last, until=25), until=25)


def test_a_job_publishes_from_inside_the_training(framework: Framework, tmp_path: Path) -> None:
    """publish.1, publish.4, as the examples do it: from rank 0, after each save, without a watcher."""
    root = tmp_path / "root"
    saves = root / "exec" / "try-7"
    root.mkdir()

    ended = train(framework, saves, "--publish-to", root, "--epoch", "7")

    expect_trained(ended)
    published = [line for line in ended.stdout.splitlines() if line.startswith("published ")]
    assert [line.partition("(")[2] for line in published] == [
        f"epoch 7, step {step}, {saves / framework.folder}{step})" for step in (5, 10, 15, 20)
    ]
    assert publish("resolve", "-checkpoint", root) == f"{saves / framework.folder}20\n"
