"""The Slurm recipes on a real Slurm: jobs are pre-empted, run out of time, and are disturbed by their past."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli_job import publish
from tests.support.program import PROGRAM
from tests.support.slurm import NODES, PATIENCE, Slurm, slurm

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

TOP = Path(__file__).parents[2]
RECIPES = TOP / "examples" / "slurm"
TRAINER = TOP / "demo" / "toy_trainer.py"
DCP_JOB = TOP / "tests" / "acceptance" / "jobs" / "dcp_job.py"
ENDLESS = "--until 1000000 --pace 0.05"
PATH = f"{Path(PROGRAM).parent}:/usr/bin:/bin"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    with slurm() as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


class Job:
    """A recipe that was submitted."""

    def __init__(
        self, cluster: Slurm, root: Path, *flags: str, command: str, recipe: str = "train.sbatch", **variables: str
    ) -> None:
        self.cluster = cluster
        self.root = root
        self.log = root.with_name(f"{root.name}.log")
        self.number = cluster.submit(
            f"--output={self.log}", *flags, RECIPES / recipe, "bash", "-c", command,
            **{"CKPT_ROOT": str(root), "FRAMEWORK": "hf", "PATH": PATH} | variables,
        )  # fmt: skip

    def save(self, restarts: int, step: int) -> Path:
        return self.root / "exec" / f"{self.number}-{restarts}" / f"checkpoint-{step}"

    def wait_for(self, text: str) -> str:
        """Waits until the job's output holds `text`; returns the output."""
        deadline = time.monotonic() + PATIENCE
        while text not in (said := self.log.read_text() if self.log.exists() else ""):
            assert time.monotonic() < deadline, f"waited for {text!r}: {said}"
            time.sleep(0.1)
        return said

    def wait_for_line(self, start: str) -> str:
        """The rest of the line that starts so."""
        while "\n" not in (rest := self.wait_for(start).partition(start)[2]):
            pass
        return rest.partition("\n")[0]

    def began(self, restarts: int) -> str:
        """What the execution began from, as its log says it."""
        return self.wait_for_line(f"publish: run: epoch {restarts + 1}, attempt {self.number}-{restarts}, ")

    def ended(self) -> str:
        """How it ended."""
        return self.cluster.wait(self.number, "the end", lambda job: job["JobState"] not in UNDER_WAY)["JobState"]


def training(flags: str) -> str:
    """The toy trainer."""
    saving = '--saves "$DISPATCH_SAVES" --resume "$DISPATCH_RESUME"'
    return f"exec {sys.executable} {TRAINER} --framework hf {saving} {flags}"


UNDER_WAY = {"PENDING", "RUNNING", "COMPLETING", "REQUEUED"}


def step_of(save: str) -> int:
    return int(save.rpartition("-")[2])


def latest(root: Path) -> str:
    return publish("resolve", "-checkpoint", root).removesuffix("\n")


def test_a_job_resumes_after_a_requeue_and_a_time_limit_and_its_zombie_loses(cluster: Slurm, root: Path) -> None:
    """run.1, run.4, begin.1, layout.6 as a cluster sees them."""
    # One minute is the shortest time limit that Slurm knows; it looks twice a minute.
    flags = ["--time=1", "--signal=B:USR1@30", "--job-name=run-7", "--dependency=singleton"]
    job = Job(cluster, root, *flags, command=training(ENDLESS))
    assert job.began(0) == "starting from step 0"
    job.wait_for("(epoch 1, step 20, ")

    cluster.ask("scontrol", "requeue", job.number)
    cluster.start_again_now(job.number)
    second = job.began(1).removeprefix("resuming from ")
    assert step_of(second) >= 20
    assert second == str(job.save(0, step_of(second)))
    job.wait_for(f"trainer: starts at step {step_of(second)}\n")
    job.wait_for("(epoch 2, ")

    cluster.wait(job.number, "the time limit", lambda fields: fields["Restarts"] == "2")
    cluster.start_again_now(job.number)
    third = job.began(2).removeprefix("resuming from ")
    assert step_of(third) > step_of(second)
    assert third == str(job.save(1, step_of(third)))
    whole = [step_of(str(save.parent)) for save in job.save(1, 0).parent.glob("*/trainer_state.json") if is_whole(save)]
    assert step_of(third) == max(whole), "the final scan did not publish everything"
    job.wait_for("(epoch 3, ")

    late = job.save(0, 999_990)
    late.mkdir()
    said = publish("publish", "-checkpoint", root, "-epoch", "1", late, "999990")
    assert said.startswith("published ")
    assert latest(root).startswith(str(job.save(2, 0).parent))
    cluster.ask("scancel", job.number)


def is_whole(marker: Path) -> bool:
    return marker.read_text().endswith("}\n")


@pytest.mark.parametrize("recipe", ["train.sbatch", "train-nodes.sbatch"])
def test_a_finished_job_succeeds_with_its_last_save_published(cluster: Slurm, root: Path, recipe: str) -> None:
    """run.1, watch.10: a final scan is made when the training has ended, and pruned as CKPT_KEEP says."""
    job = Job(cluster, root, "--job-name=short", command=training("--until 35 --pace 0"), recipe=recipe, CKPT_KEEP="1")
    assert job.ended() == "COMPLETED", job.log.read_text()
    assert latest(root) == str(job.save(0, 35))
    assert list(job.save(0, 35).parent.iterdir()) == [job.save(0, 35)]


def test_a_training_that_fails_fails_the_job(cluster: Slurm, root: Path) -> None:
    """run.3"""
    job = Job(cluster, root, "--job-name=broken", command="exit 3")
    assert job.ended() == "FAILED"
    assert cluster.job(job.number)["ExitCode"] == "3:0"


def test_a_job_without_its_root_fails_before_it_trains(cluster: Slurm, tmp_path: Path) -> None:
    """run.3, root.4: an unmounted file system is not a fresh start."""
    job = Job(cluster, tmp_path / "unmounted", "--job-name=lost", command=training("--until 35 --pace 0"))
    assert job.ended() == "FAILED"
    assert "trainer:" not in job.log.read_text()


def test_a_task_of_an_array_is_requeued_alone(cluster: Slurm, root: Path) -> None:
    """run.1: by its own id, and each on a root of its own"""
    for task in ("0", "1"):
        (root / task).mkdir()
    # Task 0 is told of its time limit; task 1 goes on.
    command = training("--until 40 --pace 0.02")
    alone = (
        f"[[ $SLURM_ARRAY_TASK_ID-${{SLURM_RESTART_COUNT:-0}} != 0-0 ]] || kill -USR1 $(ps -o ppid= $PPID); {command}"
    )
    job = Job(cluster, root, "--array=0-1", "--job-name=sweep", command=alone)
    started = f"attempt {job.number}_0-1, "
    cluster.wait(f"{job.number}_0", "the requeue", lambda fields: fields["Restarts"] == "1")
    cluster.start_again_now(f"{job.number}_0")
    job.wait_for(started)
    for task in ("0", "1"):
        cluster.wait(f"{job.number}_{task}", "the end", lambda fields: fields["JobState"] == "COMPLETED")
    assert latest(root / "0") == f"{root}/0/exec/{job.number}_0-1/checkpoint-40"
    assert latest(root / "1") == f"{root}/1/exec/{job.number}_1-0/checkpoint-40"


def test_all_nodes_get_one_answer_and_node_0_publishes(cluster: Slurm, root: Path) -> None:
    """run.6, begin.1: on a Slurm of two nodes, also after a requeue"""
    says = 'echo "$SLURMD_NODENAME: $DISPATCH_ATTEMPT has epoch $DISPATCH_EPOCH, resumes from [$DISPATCH_RESUME]"; '
    waits = f"if [[ $SLURM_NODEID = 0 ]]; then {training(ENDLESS)}; else exec sleep infinity; fi"
    job = Job(cluster, root, "--nodes=2", "--job-name=wide", command=says + waits, recipe="train-nodes.sbatch")
    first, resume = answer_of_all_nodes(job, 0)
    assert resume == ""
    job.wait_for(f"(epoch {first}, step 20, ")
    assert job.log.read_text().count("publish: watch: watching ") == 1

    cluster.ask("scontrol", "requeue", job.number)
    cluster.start_again_now(job.number)
    second, resume = answer_of_all_nodes(job, 1)
    assert second > first
    assert step_of(resume) >= 20
    job.wait_for(f"trainer: starts at step {step_of(resume)}\n")
    job.wait_for(f"(epoch {second}, ")
    cluster.ask("scancel", job.number)


def answer_of_all_nodes(job: Job, restarts: int) -> tuple[int, str]:
    """The epoch and the save to resume from, which must be the same on each node.

    The epoch itself depends on which node was faster: one that was slower may have claimed the next in vain.
    """
    answers = set()
    for node in NODES:
        start = f"{node}: {job.number}-{restarts} has epoch "
        answers.add(job.wait_for_line(start).removesuffix("]"))
    (answer,) = answers
    epoch, _, resume = answer.partition(", resumes from [")
    return int(epoch), resume


def torchrun_line() -> str:
    """The command that the recipe's head starts on each node."""
    words = (RECIPES / "train-nodes.sbatch").read_text().partition("bash -c '")[2].partition("'\n")[0]
    return re.sub(r"\\\n# *", "", words)


def test_the_recipes_torchrun_resumes_on_every_node(cluster: Slurm, root: Path) -> None:
    """run.1, run.6, verify.3: real distributed checkpoints, from a process on each of two nodes"""
    python = os.environ.get("PUBLISH_TEST_TORCH_PYTHON")
    assert python is not None, "PUBLISH_TEST_TORCH_PYTHON names no interpreter that has torch; use make test-slurm"
    train = f'{DCP_JOB} --saves "$DISPATCH_SAVES" --resume "$DISPATCH_RESUME" {ENDLESS}'
    line = torchrun_line().replace("--nproc-per-node gpu", "--nproc-per-node 1").replace("train.py", train)
    assert line.startswith("exec torchrun ")
    variables = {
        "FRAMEWORK": "dcp",
        "PATH": f"{Path(python).absolute().parent}:{PATH}",
        "PYTHONPATH": str(RECIPES.parent),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    job = Job(
        cluster, root, "--nodes=2", "--job-name=torch", command=line, recipe="train-nodes.sbatch", **variables
    )  # fmt: skip
    job.wait_for("starts at step 0\n")
    job.wait_for(f"/{job.number}-0/step-20)")
    cluster.ask("scontrol", "requeue", job.number)
    cluster.start_again_now(job.number)
    resume = job.wait_for_line(f"attempt {job.number}-1, resuming from ")
    job.wait_for(f"starts at step {step_of(resume)}\n")
    job.wait_for(f"/{job.number}-1/step-{step_of(resume) + 5})")
    cluster.ask("scancel", job.number)


def test_the_time_limit_reaches_every_node(cluster: Slurm, root: Path) -> None:
    """run.4, run.6"""
    command = "trap 'echo node $SLURM_NODEID is told; exit 0' TERM; echo listening; while :; do sleep 0.1; done"
    job = Job(cluster, root, "--nodes=2", "--job-name=limit", command=command, recipe="train-nodes.sbatch")
    deadline = time.monotonic() + PATIENCE
    while job.wait_for("listening").count("listening") < 2:
        assert time.monotonic() < deadline
    cluster.ask("scancel", "--batch", "--signal=USR1", job.number)
    cluster.wait(job.number, "the requeue", lambda fields: fields["Restarts"] == "1")
    said = job.log.read_text()
    assert "node 0 is told" in said
    assert "node 1 is told" in said
    cluster.ask("scancel", job.number)
