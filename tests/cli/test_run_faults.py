"""`begin` and `run` with saves that are broken and stores that fail for a while (run.5, verify.2)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.fault_proxy import FaultProxy
from tests.support.private_files import write_private
from tests.support.program import Word, run, start
from tests.support.run_jobs import run_line
from tests.support.s3_roots import Place, make_place, private_directory, wire_to
from tests.support.samples import SAMPLES
from tests.support.servers import Key, KeyedServer, S3Server
from tests.support.wire_faults import silence

Words = Callable[[Path], list[Word]]


def publish(root: Path, step: int, *, cut: bool = False) -> Path:
    """A published save, which is broken if it is `cut`."""
    save = root / f"exec/old/step-{step}"
    shutil.copytree(SAMPLES / "dcp" / "step-200", save)
    if cut:
        os.truncate(save / ".metadata", 100)
    assert run("publish", "-checkpoint", root, "-epoch", "1", save, str(step)).status == 0
    return save


def begin_words(root: Path) -> list[Word]:
    return ["begin", "-checkpoint", root, "-verify"]


def run_words(root: Path) -> list[Word]:
    return [*run_line(root), "sh", "-c", 'echo "DISPATCH_RESUME=$DISPATCH_RESUME"']


@pytest.mark.parametrize("words", [begin_words, run_words])
def test_an_execution_resumes_from_the_newest_whole_save_and_names_the_broken_ones(root: Path, words: Words) -> None:
    """verify.2, verify.3: `run` verifies without being asked to"""
    publish(root, 1)
    whole, broken, gone = publish(root, 2), publish(root, 3, cut=True), publish(root, 4)
    shutil.rmtree(gone)
    result = run(*words(root))
    assert result.status == 0
    assert f"DISPATCH_RESUME={whole}".encode() in result.out.splitlines()
    passed_over = [note for note in result.notes if note.startswith("broken ")]
    assert passed_over[0] == f"broken {gone}: not there"
    assert passed_over[1].startswith(f"broken {broken}: .metadata: ")
    assert len(passed_over) == 2


@pytest.mark.parametrize("words", [begin_words, run_words])
def test_nothing_starts_if_no_published_save_is_whole(root: Path, words: Words) -> None:
    """verify.2, run.3"""
    publish(root, 1, cut=True)
    result = run(*words(root))
    assert (result.status, result.out) == (1, b"")
    assert result.notes[-1] == "no save to resume from is whole (each is named above with its fault): 1 looked at"


@pytest.mark.parametrize("words", [begin_words, run_words])
def test_going_back_to_a_broken_save_is_refused(root: Path, words: Words) -> None:
    """begin.6, verify.2: with the fault; without -verify it is resumed from"""
    publish(root, 1)
    broken = publish(root, 2, cut=True)
    first, *rest = words(root)
    result = run(first, "-from", broken, *rest)
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith(f"broken {broken}: .metadata: ")
    assert result.notes[1] == "no save to resume from is whole (each is named above with its fault): 1 looked at"
    went_on = run(
        first, "-from", broken, "-attempt", "b", "-verify=false", *[word for word in rest if word != "-verify"]
    )
    assert went_on.status == 0
    assert f"DISPATCH_RESUME={broken}".encode() in went_on.out.splitlines()


def test_without_verify_the_latest_publication_counts(root: Path) -> None:
    """verify.3, begin.5"""
    broken = publish(root, 1, cut=True)
    result = run(*run_line(root, "-verify=false"), "sh", "-c", 'echo "$DISPATCH_RESUME"')
    assert (result.status, result.out) == (0, f"{broken}\n".encode())


class Job(NamedTuple):
    """A root on a server, and a wire before it."""

    place: Place
    wire: FaultProxy
    folder: Path

    def run(self, script: str, *flags: str) -> subprocess.Popen[bytes]:
        """`publish run`, with a command that knows how to save: `save STEP`."""
        source = f"file:{self.folder / 'creds'}"
        line = ["run", "-checkpoint", self.place.url, "-creds", source, "-framework", "hf", "-interval", "20ms"]
        return start(*line, "-attempt", "a", *flags, "--", "sh", "-c", script, stdin=subprocess.PIPE)

    def save(self, step: int) -> None:
        self.place.fill(f"exec/a/checkpoint-{step}/trainer_state.json", body=b'{"global_step": %d}' % step)


@contextmanager
def job_on(server: S3Server, folder: Path, key: Key | None = None) -> Iterator[Job]:
    with wire_to(server) as wire:
        private_directory(folder / "creds", server, endpoint=wire.endpoint, key=key)
        yield Job(make_place(server), wire, folder)


def until_it_says(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """The line of its stderr that holds `text`."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"ended without a line that holds {text!r}")


def test_a_scan_that_times_out_does_not_stop_the_training(moto: S3Server, tmp_path: Path) -> None:
    """run.5, s3.11: what it missed is published once the store answers again"""
    with job_on(moto, tmp_path) as job, job.run("read line; echo on", "-timeout", "3s") as process:
        job.save(1)
        until_it_says(process, b"(epoch 1, step 1, ")
        job.wire.spoil_all("GET", silence)
        until_it_says(process, b"out of time (-timeout 3s)")
        assert until_it_says(process, b"publish: run: ") == b"publish: run: a scan failed, trying again\n"
        job.save(2)
        job.wire.heal()
        until_it_says(process, b"(epoch 1, step 2, ")
        out, _ = process.communicate(b"\n", timeout=60)
        assert (process.returncode, out) == (0, b"on\n")


def test_credentials_may_rotate_while_the_command_runs(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """run.1, s3.12: InvalidAccessKeyId for real"""
    old, new = seaweedfs.add_key(), seaweedfs.add_key()
    with job_on(seaweedfs, tmp_path, key=old) as job, job.run("read line; exit 3") as process:
        job.save(1)
        until_it_says(process, b"(epoch 1, step 1, ")
        for name, value in new._asdict().items():
            write_private(tmp_path / "creds" / name, value)
        seaweedfs.remove_key(old)
        until_it_says(process, b"the store rejected the credentials (InvalidAccessKeyId)")
        job.save(2)
        until_it_says(process, b"(epoch 1, step 2, ")
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 3


@pytest.mark.parametrize(("verb", "stream"), [("watch", "out"), ("run", "err")])
def test_what_keep_removes_is_a_result_of_watch_and_a_message_of_run(root: Path, verb: str, stream: str) -> None:
    """watch.10, run.2"""
    for step in (1, 2):
        publish(root, step)
    shutil.copytree(SAMPLES / "hf" / "checkpoint-5", root / "exec/a/checkpoint-5")
    flags = ["-checkpoint", str(root), "-framework", "hf", "-interval", "20ms", "-attempt", "a", "-keep", "1"]
    words = {"watch": ["watch", *flags, "-epoch", "2"], "run": ["run", *flags, "--", "true"]}[verb]
    with start(*words) as process:
        if verb == "watch":
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"published ")
            process.terminate()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    removed = [f"removed {root}/exec/old/step-1\n", f"removed {root}/exec/old/step-2\n"]
    expected = {"out": ("".join(removed), ""), "err": ("", "".join("publish: " + line for line in removed))}[stream]
    assert out.decode() == expected[0]
    assert "".join(line for line in err.decode().splitlines(keepends=True) if ": removed " in line) == expected[1]
