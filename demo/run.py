"""`publish` in one terminal: a job is killed during a save, resumes, meets a zombie of its first start, and is pruned.

The installed program does everything shown. Exits with a status other than 0 as soon as a step
does not have the expected result.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PYTHON = sys.executable
TRAINER = str(Path(__file__).with_name("toy_trainer.py"))
TIME_LIMIT = 120  # seconds; far more than it takes, so that a hang ends as a failure
SHOWN = {PYTHON: "python", TRAINER: "toy_trainer.py"}
FOLDER = {"hf": "checkpoint-", "dcp": "step-"}


class Wrong(Exception):
    """Something did not happen as the story says."""


def main() -> int:
    """Plays the story with each framework's files."""
    signal.alarm(TIME_LIMIT)
    with tempfile.TemporaryDirectory(prefix="publish-demo-") as folder:
        try:
            for framework, whose in (("hf", "a Hugging Face Trainer"), ("dcp", "torch's distributed checkpoints")):
                title(f"The files of {whose}: -framework {framework}")
                root = Path(folder, framework)
                root.mkdir()
                Story(framework, root).play()
        except Wrong as wrong:
            print(f"\nTHE DEMO WENT WRONG: {wrong}", file=sys.stderr)
            return 1
    title("All of it happened as it should")
    return 0


class Story:
    """One job on one checkpoint root."""

    def __init__(self, framework: str, root: Path) -> None:
        self.framework = framework
        self.root = root
        self.reference = root.with_name(f"{framework}-uninterrupted")

    def play(self) -> None:
        """From the first start to the pruning."""
        tell(
            f"The checkpoint root is an empty folder, {self.root}.",
            "An execution is one start of the job; its epoch is a number that grows with every start.",
            "A publication, one empty file in pub/, says that a save is complete.",
        )

        step("The job starts with one command, and its node dies in the middle of a save.")
        with self.job("run-1", halt=30) as job:
            follow(job, "epoch 1, attempt run-1, starting from step 0")
            follow(job, "(epoch 1, step 10,", "(epoch 1, step 20,", "in the middle of saving step 30")
            tell("SIGKILL for all of it, the training and publish: neither can do anything more.")
            os.killpg(job.pid, signal.SIGKILL)
        half = self.save_of(1, 30)
        tell(
            f"What the killed save left in {half.relative_to(self.root)}:",
            *sorted(f"  {file.name} ({file.stat().st_size:,} bytes)" for file in half.iterdir()),
            self.what_is_missing(half),
        )
        self.expect_latest(
            str(self.save_of(1, 20)),
            "The save of step 20. That of step 30 is newer, but was never whole, so it was never published.",
        )

        step("The scheduler starts the job again with the same command line. It resumes there and trains to the end.")
        with self.job("run-2") as job:
            follow(job, f"epoch 2, attempt run-2, resuming from {self.save_of(1, 20)}")
            follow(job, "starts at step 20")
            follow(job, "published 4 saves")
            finish(job)
        self.expect_latest(str(self.save_of(2, 60)), "The last step.")
        self.expect_same_weights()

        step("A process of execution 1 was not dead after all. It trains on, to step 90, and publishes late.")
        with self.train(epoch=1, until=90, resume=str(self.save_of(1, 20)), every=90) as trainer:
            follow(trainer, "saved step 90")
            finish(trainer)
        said = self.publish("publish", "-checkpoint", str(self.root), "-epoch", "1", str(self.save_of(1, 90)), "90")
        expect("(epoch 1, step 90," in said, "the late save was not published")
        self.expect_latest(
            str(self.save_of(2, 60)),
            "Still execution 2's save, although 90 is the greater step: epochs count first, and epoch 1 is the past.",
        )

        step("Disks are finite: keep the latest two publications, remove the others and their saves.")
        self.publish("prune", "-checkpoint", str(self.root), "-keep", "2")
        left = sorted(str(save.relative_to(self.root)) for save in self.root.glob("exec/*/*"))
        tell("What is left:", *(f"  {save}" for save in left))
        prefix = FOLDER[self.framework]
        expect(
            left == [f"exec/run-1/{prefix}30", f"exec/run-2/{prefix}50", f"exec/run-2/{prefix}60"],
            "prune left other saves than it should",
        )
        tell("The half save stays: it was never published, so prune does not know it. Remove exec/run-1 when you like.")
        self.expect_latest(str(self.save_of(2, 60)), "And the latest is what it was.")

    def save_of(self, epoch: int, number: int) -> Path:
        return self.root / "exec" / f"run-{epoch}" / f"{FOLDER[self.framework]}{number}"

    def what_is_missing(self, save: Path) -> str:
        """What shows that a save is not whole."""
        state = save / "trainer_state.json"
        if not state.exists():
            return "There is no .metadata, which is written last: the save is not whole."
        return f"trainer_state.json ends in {state.read_text()[-20:]!r}: it is cut off, so the save is not whole."

    def expect_latest(self, save: str, meaning: str) -> str:
        """Asks `resolve` and returns what it printed."""
        said = self.publish("resolve", "-checkpoint", str(self.root)).removesuffix("\n")
        expect(said == save, f"resolve should have printed {save!r}")
        tell(meaning)
        return said

    def expect_same_weights(self) -> None:
        """Holds the resumed run against an uninterrupted one."""
        command = [PYTHON, TRAINER, "--framework", self.framework, "--saves", str(self.reference), "--until", "60"]
        subprocess.run([*command, "--pace", "0"], check=True, stdout=subprocess.DEVNULL)
        weights = "model.safetensors" if self.framework == "hf" else "__0_0.distcp"
        uninterrupted = self.reference / f"{FOLDER[self.framework]}60" / weights
        expect(
            uninterrupted.read_bytes() == (self.save_of(2, 60) / weights).read_bytes(),
            "the resumed run's weights are not those of an uninterrupted one",
        )
        tell("Its weights are, byte for byte, those of a run that was never interrupted.")

    def publish(self, *arguments: str) -> str:
        """Runs a verb to its end and returns its stdout."""
        command = ["publish", *arguments]
        show(command)
        ended = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        for line in (ended.stdout + ended.stderr).splitlines():
            print(f"    {line}", flush=True)
        expect(ended.returncode == 0, f"status {ended.returncode}")
        return ended.stdout

    @contextmanager
    def job(self, attempt: str, halt: int | None = None) -> Iterator[subprocess.Popen[str]]:
        """The line of a job script. `halt`: the step in whose save the training stands still."""
        training = f"exec {shlex.quote(PYTHON)} {shlex.quote(TRAINER)} --framework {self.framework} --until 60"
        training += ' --saves "$DISPATCH_SAVES" --resume "$DISPATCH_RESUME"'
        command = ["publish", "run", "-checkpoint", str(self.root), "-framework", self.framework, "-interval", "200ms"]
        # By a variable, so that the command line is the same for each start.
        accident = {} if halt is None else {"TOY_HALT_IN_SAVE": str(halt)}
        with started([*command, "--", "sh", "-c", training], {"DISPATCH_ATTEMPT": attempt} | accident) as process:
            yield process

    @contextmanager
    def train(self, epoch: int, until: int, resume: str = "", every: int = 10) -> Iterator[subprocess.Popen[str]]:
        saves = self.root / "exec" / f"run-{epoch}"
        command = [PYTHON, TRAINER, "--framework", self.framework, "--saves", str(saves), "--until", str(until)]
        command += ["--every", str(every), "--resume", resume]
        with started(command, {}) as process:
            yield process


@contextmanager
def started(command: list[str], scheduler: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process in the background; it does not outlive the block."""
    show(command, scheduler, "&")
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment() | dict(scheduler),
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def follow(process: subprocess.Popen[str], *texts: str) -> None:
    """Prints what the process says until it has said all of `texts`, in any order."""
    assert process.stdout is not None, "started() pipes it"
    awaited = set(texts)
    for line in process.stdout:
        print(f"    {line}", end="", flush=True)
        awaited = {text for text in awaited if text not in line}
        if not awaited:
            return
    raise Wrong(f"the process ended without saying {', '.join(map(repr, sorted(awaited)))}")


def finish(process: subprocess.Popen[str]) -> None:
    status = process.wait()
    expect(status == 0, f"a process ended with status {status}")


def environment() -> dict[str, str]:
    """This one, with the program that belongs to this interpreter found first."""
    return os.environ | {"PATH": f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"}


def expect(fact: object, otherwise: str) -> None:
    if not fact:
        raise Wrong(otherwise)


def title(text: str) -> None:
    print(f"\n=== {text} ===", flush=True)


def step(text: str) -> None:
    print(f"\n* {text}", flush=True)


def tell(*lines: str) -> None:
    for line in lines:
        print(f"  {line}", flush=True)


def show(command: list[str], scheduler: Mapping[str, str] | None = None, after: str = "") -> None:
    """The command as one would type it."""
    variables = [f"{name}={value}" for name, value in (scheduler or {}).items()]
    line = " ".join([*variables, *map(shlex.quote, command), after])
    for word, name in SHOWN.items():
        line = line.replace(word, name)
    print("  $", line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
