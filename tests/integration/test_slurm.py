"""The Slurm recipe on a real Slurm: a job is pre-empted, runs out of time, and is disturbed by its past."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli_job import publish
from tests.support.program import PROGRAM
from tests.support.slurm import PATIENCE, Slurm, slurm

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

TOP = Path(__file__).parents[2]
RECIPE = TOP / "examples" / "slurm" / "train.sbatch"
TRAINER = TOP / "demo" / "toy_trainer.py"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    with slurm() as running:
        yield running


class Job:
    """The recipe, submitted with the toy trainer, which never finishes unless `until` is given."""

    def __init__(self, cluster: Slurm, root: Path, *flags: str, training: str) -> None:
        self.cluster = cluster
        self.root = root
        self.log = root.with_name(f"{root.name}.log")
        path = f"{Path(PROGRAM).parent}:/usr/bin:/bin"
        command = f'exec {sys.executable} {TRAINER} --framework hf --saves "$SAVES" --resume "$RESUME" {training}'
        self.number = cluster.submit(
            f"--output={self.log}", *flags, RECIPE, "bash", "-c", command,
            CKPT_ROOT=str(root), FRAMEWORK="hf", PATH=path,
        )  # fmt: skip

    def epoch(self, restarts: int) -> int:
        return int(self.number) * 1_000_000 + restarts

    def save(self, restarts: int, step: int) -> Path:
        return self.root / "exec" / f"{self.number}-{restarts}" / f"checkpoint-{step}"

    def wait_for(self, text: str) -> str:
        """Waits until the job's output holds `text`; returns the output."""
        deadline = time.monotonic() + PATIENCE
        while text not in (said := self.log.read_text() if self.log.exists() else ""):
            assert time.monotonic() < deadline, f"waited for {text!r}: {said}"
            time.sleep(0.1)
        return said

    def resumed_from(self, restarts: int) -> str:
        said = self.wait_for(f"attempt {self.number}-{restarts}, resuming from: ")
        return said.partition(f"epoch {self.epoch(restarts)}, attempt {self.number}-{restarts}, resuming from: ")[
            2
        ].partition("\n")[0]


UNDER_WAY = {"PENDING", "RUNNING", "COMPLETING"}


def step_of(save: str) -> int:
    return int(save.rpartition("-")[2])


def latest(root: Path) -> str:
    return publish("resolve", "-checkpoint", root).removesuffix("\n")


def test_a_job_resumes_after_a_requeue_and_a_time_limit_and_its_zombie_loses(cluster: Slurm, tmp_path: Path) -> None:
    """resolve.1, watch.1, watch.6, layout.6 as a cluster sees them."""
    root = tmp_path / "root"
    root.mkdir()
    # One minute is the shortest time limit that Slurm knows; it looks twice a minute.
    flags = ["--time=1", "--signal=B:USR1@30", "--job-name=run-7"]
    job = Job(cluster, root, *flags, training="--until 1000000 --pace 0.05")
    assert job.resumed_from(0) == "the start"
    job.wait_for(f"(epoch {job.epoch(0)}, step 20, ")

    cluster.ask("scontrol", "requeue", job.number)
    cluster.start_again_now(job.number)
    second = job.resumed_from(1)
    assert step_of(second) >= 20
    assert second == str(job.save(0, step_of(second)))
    job.wait_for(f"trainer: starts at step {step_of(second)}\n")
    job.wait_for(f"(epoch {job.epoch(1)}, step {step_of(second) + 10 - step_of(second) % 10}, ")

    job.wait_for("stopped before the time limit: back into the queue")
    cluster.start_again_now(job.number)
    third = job.resumed_from(2)
    assert step_of(third) > step_of(second)
    assert third == str(job.save(1, step_of(third)))
    whole = [step_of(str(save.parent)) for save in job.save(1, 0).parent.glob("*/trainer_state.json") if is_whole(save)]
    assert step_of(third) == max(whole), "the watch did not drain"
    job.wait_for(f"trainer: starts at step {step_of(third)}\n")
    job.wait_for(f"(epoch {job.epoch(2)}, ")

    late = job.save(0, 999_990)
    late.mkdir()
    said = publish("publish", "-checkpoint", root, "-epoch", str(job.epoch(0)), late, "999990")
    assert said.startswith("published ")
    assert latest(root).startswith(str(job.save(2, 0).parent))
    cluster.ask("scancel", job.number)


def is_whole(marker: Path) -> bool:
    return marker.read_text().endswith("}\n")


def test_a_finished_job_succeeds_with_its_last_save_published(cluster: Slurm, tmp_path: Path) -> None:
    """watch.6: the watch looks once more when the training has ended, so a long interval hides nothing."""
    root = tmp_path / "root"
    root.mkdir()
    job = Job(cluster, root, "--job-name=short", training="--until 35 --pace 0")
    ended = cluster.wait(job.number, "the job to end", lambda fields: fields["JobState"] not in UNDER_WAY)
    assert ended["JobState"] == "COMPLETED", job.log.read_text()
    assert latest(root) == str(job.save(0, 35))


def test_a_job_without_its_root_fails_before_it_trains(cluster: Slurm, tmp_path: Path) -> None:
    """resolve.3, root.4: an unmounted file system is not a fresh start."""
    job = Job(cluster, tmp_path / "unmounted", "--job-name=lost", training="--until 35 --pace 0")
    ended = cluster.wait(job.number, "the job to end", lambda fields: fields["JobState"] not in UNDER_WAY)
    assert ended["JobState"] == "FAILED"
    assert "trainer:" not in job.log.read_text()


def test_a_job_whose_watch_dies_stops_and_publishes_what_it_can(cluster: Slurm, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    job = Job(cluster, root, "--job-name=blind", training="--until 1000000 --pace 0.02")
    job.wait_for(f"(epoch {job.epoch(0)}, step 10, ")
    pids = cluster.ask("scontrol", "listpids", job.number).split("\n")[1:]
    watch = [pid for pid in (line.split()[0] for line in pids if line) if is_watch(pid)]
    assert len(watch) == 1
    cluster.ask("/bin/kill", "-KILL", watch[0])
    ended = cluster.wait(job.number, "the job to end", lambda fields: fields["JobState"] not in UNDER_WAY)
    assert ended["JobState"] == "FAILED"
    said = job.wait_for("publish watch has ended: stopping the training")
    trained = max(int(line.split()[-1]) for line in said.splitlines() if line.startswith("trainer: saved step "))
    assert step_of(latest(root)) >= trained


def is_watch(pid: str) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return b"watch" in words and any(word.endswith(b"/publish") for word in words)
