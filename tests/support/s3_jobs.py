"""The installed program on a root in a bucket, reached through a wire that a test can spoil."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from publish.domain.entry import Entry
from tests.support.fault_proxy import FaultProxy
from tests.support.program import Result, Word, run, start
from tests.support.s3_roots import Place, make_place, private_directory, wire_to
from tests.support.servers import S3Server


class S3Job(NamedTuple):
    """`flags` are what every verb needs."""

    place: Place
    wire: FaultProxy
    flags: tuple[str, ...]

    def run(self, verb: str, *words: Word) -> Result:
        result = run(verb, *self.flags, *words)
        # cli.9, whatever the test is about.
        assert self.place.server.key.secret_access_key.encode() not in result.out + result.err
        return result

    def publish(self, step: int, *words: Word) -> Result:
        return self.run("publish", "-epoch", "1", *words, self.url(step), str(step))

    def watch(self, *words: Word) -> subprocess.Popen[bytes]:
        return start("watch", *self.flags, "-framework", "hf", "-epoch", "1", "-attempt", "a", *words)

    def path(self, step: int) -> str:
        return f"exec/a/checkpoint-{step}"

    def url(self, step: int) -> str:
        return f"{self.place.url}/{self.path(step)}"

    def save(self, step: int, *files: str) -> None:
        """A whole save, behind the program's back."""
        state = b'{"global_step": %d}' % step
        self.place.fill(*(f"{self.path(step)}/{file}" for file in files))
        self.place.fill(f"{self.path(step)}/trainer_state.json", body=state)

    def record(self, *steps: int) -> None:
        """Publications, behind the program's back."""
        self.place.fill(*(f"pub/{self.entry(step)}" for step in steps), body=b"")

    def entry(self, step: int) -> str:
        return Entry.of(1, step, self.path(step).encode()).name.decode()

    def published(self) -> list[int]:
        """The steps in the log."""
        return sorted(Entry.parse(path[4:].encode()).step for path in self.place.paths() if path.startswith("pub/"))


@contextmanager
def s3_job(server: S3Server, folder: Path) -> Iterator[S3Job]:
    place = make_place(server)
    with wire_to(server) as wire:
        source = private_directory(folder / "creds", server, endpoint=wire.endpoint)
        yield S3Job(place, wire, ("-checkpoint", place.url, "-creds", source))
