"""What the tests of the command line on S3 share: a root whose requests can be disturbed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.fault_proxy import FaultProxy
from tests.support.program import Result, Word, run, start, without_narration
from tests.support.s3_roots import Place, make_place, private_directory
from tests.support.servers import S3Server
from tests.support.wire_faults import says

EXPIRED = says(403, "ExpiredToken")


class Job(NamedTuple):
    """A root on a server, a wire before it, and the flags to reach it through the wire."""

    place: Place
    wire: FaultProxy
    folder: Path
    flags: tuple[str, ...]

    def run(self, verb: str, *words: Word) -> Result:
        return run(verb, *self.flags, *words)

    def save(self, step: int) -> str:
        self.place.fill(f"exec/a/checkpoint-{step}/trainer_state.json", body=b'{"global_step": %d}' % step)
        return f"{self.place.url}/exec/a/checkpoint-{step}"

    def watch(self, *words: Word, **env: str) -> subprocess.Popen[bytes]:
        line = ("-framework", "hf", "-epoch", "3", "-attempt", "a", *words)
        return start("watch", *self.flags, *line, env=env)


def make_job(server: S3Server, folder: Path, wire: FaultProxy) -> Job:
    place = make_place(server)
    source = private_directory(folder / "creds", server, endpoint=wire.endpoint)
    return Job(place, wire, folder, ("-checkpoint", place.url, "-creds", source))


def said(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def noted(process: subprocess.Popen[bytes]) -> list[str]:
    assert process.stderr is not None
    lines = without_narration(process.stderr.read()).decode().splitlines()
    return [line.removeprefix("publish: ") for line in lines]
