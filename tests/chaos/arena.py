"""What the actors and the checker of one root share: the processes, the counts, the violations."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from publish.domain.entry import Entry
from tests.chaos.places import Place
from tests.chaos.trainer import NOT_RESUMABLE
from tests.support.program import CLEAN, PROGRAM

KEEP = 2
# What a verb may fail with while saves are removed under its hands.
EXPECTED_FAILURES = ("is being removed", "is gone", "not found below the root", "cannot publish", "gone")


class Ended(NamedTuple):
    """A program that has ended; `killed`: by us."""

    status: int
    out: str
    err: str
    killed: bool


class Arena:
    """One root. `flags` are those that every verb needs; `where` is for CHAOS_PLACE."""

    def __init__(self, name: str, place: Place, flags: tuple[str, ...], where: str, seed: int) -> None:
        self.name = name
        self.place = place
        self.flags = flags
        self.where = where
        self.over = threading.Event()
        self.counts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.violations: list[str] = []
        self.went_back: list[Entry] = []
        self.executions = 0
        self.latest = ""
        self.published: list[tuple[str, int]] = []
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def draw(self, low: float, high: float) -> float:
        with self._lock:
            return self._random.uniform(low, high)

    def chance(self, probability: float) -> bool:
        return self.draw(0, 1) < probability

    def choose(self, names: list[str]) -> str:
        return names[int(self.draw(0, len(names) - 1e-9))]

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.counts[what] += number

    def violate(self, text: str) -> None:
        with self._lock:
            if len(self.violations) < 50:
                self.violations.append(f"{self.name}: {text}")

    @contextmanager
    def started(self, verb: str, *words: str, env: Mapping[str, str] | None = None) -> Iterator[Running]:
        """The program, in a session of its own; killed with all that it started at the end."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                [PROGRAM, verb, *self.flags, *words],
                env=CLEAN | {"CHAOS_PLACE": self.where, "PYTHONPATH": os.getcwd()} | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            running = Running(self, verb, process)
            try:
                yield running
            finally:
                running.kill()
                process.wait()
                out.seek(0)
                err.seek(0)
                running.ended = Ended(
                    process.returncode, os.fsdecode(out.read()), os.fsdecode(err.read()), running.killed
                )
                self._judge(verb, running.ended)

    def run(self, verb: str, *words: str, patience: float = 120.0) -> Ended:
        """The program to its end, or for `patience` seconds; then it is killed."""
        with self.started(verb, *words) as running:
            running.wait(patience)
        return running.ended

    def _judge(self, verb: str, ended: Ended) -> None:
        self.count(verb)
        for line in (ended.out + ended.err).splitlines():
            text = line.removeprefix("publish: ")
            if text.startswith("published "):
                self.count("publications")
                self.published.append((text, len(self.published)))
            elif text.startswith("removed "):
                self.count("removals")
        if "internal error" in ended.err or "Traceback" in ended.err:
            self.violate(f"{verb}: {ended.err}")
        if ended.killed or ended.status == 0 or ended.status < 0 or ended.status in (128 + 15, 128 + 9):
            return
        if verb == "run" and ended.status == NOT_RESUMABLE:
            # A zombie's base may go; of the newest execution it is judged where it runs (prune.12).
            self.count("zombies without a base")
            return
        last = ended.err.splitlines()[-1] if ended.err else ""
        with self._lock:
            self.failures[f"{verb}: {_without_names(last)}"] += 1
        if not any(words in ended.err for words in EXPECTED_FAILURES):
            self.violate(f"{verb} ended with {ended.status}: {ended.err}")


class Running:
    """A program under way."""

    def __init__(self, arena: Arena, verb: str, process: subprocess.Popen[bytes]) -> None:
        self.killed = False
        self.ended = Ended(0, "", "", killed=False)
        self._arena = arena
        self._process = process

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait(self, seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def signal(self, number: int) -> None:
        """To the program alone."""
        if self.alive:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kills it and all that it started."""
        if self.alive:
            self.killed = True
            self._arena.count("kills")
        # The group outlives its first process as long as another is left.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _without_names(line: str) -> str:
    return " ".join(word for word in line.split() if "/" not in word and not any(char.isdigit() for char in word))
