"""The installed program takes publications back beside a watch and prunes, and killed anywhere."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from publish.domain.entry import Entry
from tests.support.cli_job import Watch
from tests.support.fault_proxy import passes
from tests.support.program import Word, run, start
from tests.support.s3_jobs import S3Job
from tests.support.variants import variants
from tests.support.wire_faults import Held

PUBLISHED, RETRACTED = range(1, 13), range(2, 13, 2)


class Job(Protocol):
    """A root of either kind, with saves `exec/a/checkpoint-<step>`."""

    @property
    def flags(self) -> tuple[Word, ...]: ...
    def save(self, step: int, *files: str) -> None: ...
    def url(self, step: int) -> Word: ...


class DirectoryJob(NamedTuple):
    root: Path

    @property
    def flags(self) -> tuple[Word, ...]:
        return ("-checkpoint", self.root)

    def url(self, step: int) -> Path:
        return self.root / f"exec/a/checkpoint-{step}"

    def save(self, step: int, *files: str) -> None:
        self.url(step).mkdir(parents=True)
        for file in files:
            (self.url(step) / file).write_text("w")
        (self.url(step) / "trainer_state.json").write_text(f'{{"global_step": {step}}}')

    def paths(self) -> list[str]:
        return [path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()]


def beside_a_watch_and_prunes(job: Job, paths: Callable[[], list[str]]) -> None:
    """Half of the saves are retracted as soon as they are published, each beside a prune."""
    prunes: list[subprocess.Popen[bytes]] = []
    words = ("-framework", "hf", "-epoch", "1", "-attempt", "a", "-interval", "50ms", "-keep", "9")
    with start("watch", *job.flags, *words) as process:
        watch = Watch(process)
        for step in PUBLISHED:
            job.save(step, "weights")
            watch.line_with(f"step {step},")
            if step in RETRACTED:
                prunes.append(start("prune", *job.flags, "-keep", "4"))
                result = run("retract", *job.flags, "-delete", job.url(step))
                assert result.status == 0, result
                assert f"step {step}," in result.out.decode()
        watch.stop()
    for prune in prunes:
        _, err = prune.communicate(timeout=60)
        assert prune.returncode == 0, err
    assert run("prune", *job.flags, "-keep", "3").status == 0
    left = [step for step in PUBLISHED if step not in RETRACTED][-3:]
    assert [Entry.parse(path[4:].encode()).step for path in sorted(paths()) if path.startswith("pub/")] == left
    saves = {f"exec/a/checkpoint-{step}/{file}" for step in left for file in ("weights", "trainer_state.json")}
    assert {path for path in paths() if not path.startswith("pub/")} == saves


def test_on_a_directory_beside_a_watch_and_prunes(tmp_path: Path) -> None:
    """retract.1, watch.7, prune.8"""
    job = DirectoryJob(tmp_path / "root")
    job.root.mkdir()
    beside_a_watch_and_prunes(job, job.paths)


def test_on_s3_beside_a_watch_and_prunes(job: S3Job) -> None:
    """retract.1, watch.7, prune.8"""
    beside_a_watch_and_prunes(job, job.place.paths)


@pytest.mark.parametrize("happens", variants({"after the request": True, "before it": False}, exhaustive={"before it"}))
def test_on_s3_a_prune_finishes_a_retraction_of_the_latest_killed_at_any_request(
    happens: bool,  # noqa: FBT001
    job: S3Job,
) -> None:
    """retract.1: also where the prune would keep all of them."""
    for number in count():
        for path in job.place.paths():
            job.place.store().delete(path.encode())
        for step in (1, 2):
            job.save(step, "weights")
        job.record(1, 2)
        held = Held(happens=happens)
        job.wire.heal()
        job.wire.spoil("*", *[passes] * number, held)
        with start("retract", *job.flags, "-delete", job.url(2)) as process:
            while process.poll() is None and not held.reached(0.02):
                pass
            process.kill()
        begun = any(path.startswith(".publish/prune/") for path in job.place.paths()) or job.published() == [1]
        job.wire.heal()
        again = job.run("prune", "-keep", "2")
        assert (again.status, again.err) == (0, b"")
        steps = [1] if begun else [1, 2]
        left = [f"{job.path(step)}/{file}" for step in steps for file in ("trainer_state.json", "weights")]
        assert sorted(job.place.paths()) == left + [f"pub/{job.entry(step)}" for step in steps]
        if not held.reached(0):
            break
    assert number > 6
