"""Power cuts: a verb is recorded on the strict filesystem, cut after each operation, and what is left is judged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import NamedTuple

from tests.support.power_judge import Judge, Said
from tests.support.program import CLEAN, PROGRAM, listens
from tests.support.strict_calls import Fault, Stop
from tests.support.strict_cuts import cuts
from tests.support.strict_fs import StrictMount
from tests.support.strict_model import Model, Op, Tree

# The root and the program's words lie on one filesystem, so that what it said and what it did have one order.
ROOT = b"root"
OUT, ERR = b"words/out", b"words/err"

_PATIENCE = 60.0  # seconds
# Mixtures drawn at random for each point in time, beside the ones that are always tried.
_DRAWS = 8


def filesystem(*trees: Tree) -> Model:
    """A filesystem with a root that holds `trees`, all of it durable, and a place for the program's words."""
    root = {ROOT + b"/" + path: content for tree in trees for path, content in tree.items()}
    return Model.of({ROOT + b"/exec": None, OUT: b"", ERR: b"", **root})


def unsynced(model: Model, tree: Tree) -> Model:
    """The filesystem with `tree` written to its root, and not synced."""
    for path, content in tree.items():
        model.add(ROOT + b"/" + path, content)
    return model


def said_on(model: Model) -> Said:
    """What the program has said on the strict filesystem until now."""
    return Said.read(words_on(model, OUT) + words_on(model, ERR))


def words_on(model: Model, stream: bytes) -> bytes:
    """What stands on stdout (OUT) or stderr (ERR)."""
    return model.file(model.find(stream)).contents[-1]


class Finding(NamedTuple):
    """A state that breaks a rule, and how to get there."""

    broken: str
    cut: str
    steps: list[str]

    def __str__(self) -> str:
        lines = [f"{number:5}. {step}" for number, step in enumerate(self.steps, 1)]
        return "\n".join([f"BROKEN: {self.broken}", *lines, f"       power cut: {self.cut}"])


class Recording(NamedTuple):
    """What programs did on a filesystem, and the filesystem before it."""

    before: Model
    ops: Sequence[Op]
    statuses: Sequence[int]

    def killed(self) -> Iterator[tuple[Model, list[str]]]:
        """The filesystem, its unsynced part included, after each operation and before the first; and how it came to be.

        That is what a program finds which is started after a kill.
        """
        model = self.before.copy()
        steps: list[str] = []
        yield model.copy(), [*steps, "killed"]
        for op in self.ops:
            steps.append(_described(model, op))
            model.apply(op)
            yield model.copy(), [*steps, "killed"]

    def ended(self) -> Model:
        """The filesystem, its unsynced part included, at the end."""
        *_, (model, _) = self.killed()
        return model

    def afterwards(self) -> Recording:
        """Nothing more happens."""
        return Recording(self.ended(), (), self.statuses)


class Laboratory:
    """Records programs on the strict filesystem, and has a judge look at what a cut leaves."""

    def __init__(self, mount: StrictMount, judge: Judge, seed: int) -> None:
        self._mount = mount
        self._judge = judge
        self._random = random.Random(seed)
        self.states = 0

    @property
    def root(self) -> str:
        """The root's path where a program is recorded."""
        return str(self._mount.path / os.fsdecode(ROOT))

    def record(
        self, before: Model, *words: str, program: Sequence[str] = (PROGRAM,), faults: Sequence[Fault] = ()
    ) -> Recording:
        """Runs a verb to its end."""
        with self._recording(before, faults=faults) as recording:
            status = self._start([*program, *words]).wait(_PATIENCE)
        return recording(status)

    def record_watch(self, before: Model, *words: str, until: bytes = b"", faults: Sequence[Fault] = ()) -> Recording:
        """Runs a watch until it has said `until`, or only until it listens to signals; then it is told to stop."""
        with self._recording(before, faults=faults) as recording:
            process = self._start([PROGRAM, *words])
            end = monotonic() + _PATIENCE
            while not (until in self._words() if until else listens(process.pid)):
                assert process.poll() is None, self._words()
                assert monotonic() < end, self._words()
                sleep(0.01)
            process.send_signal(signal.SIGTERM)
            status = process.wait(_PATIENCE)
        return recording(status)

    def _words(self) -> bytes:
        return b"".join((self._mount.path / os.fsdecode(stream)).read_bytes() for stream in (OUT, ERR))

    def record_beside(self, before: Model, first: Sequence[str], second: Sequence[str], after: int) -> Recording:
        """Runs `first`, which is stopped after its change number `after` while `second` runs from start to end."""
        with self._recording(before, Stop(after)) as recording:
            slow = self._start([PROGRAM, *first])
            _, status = os.waitpid(slow.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), f"ended before change {after}"
            fast = self._start([PROGRAM, *second]).wait(_PATIENCE)
            slow.send_signal(signal.SIGCONT)
            status = slow.wait(_PATIENCE)
        return recording(status, fast)

    @contextmanager
    def _recording(self, before: Model, stop: Stop | None = None, faults: Sequence[Fault] = ()) -> Iterator[_Taken]:
        self._mount.load(before, stop, faults)
        taken = _Taken(before)
        yield taken
        taken.ops = self._mount.taken()

    def _start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        streams = [os.open(self._mount.path / os.fsdecode(path), os.O_WRONLY | os.O_APPEND) for path in (OUT, ERR)]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=streams[0], stderr=streams[1], env=CLEAN)
        for stream in streams:
            os.close(stream)
        return process

    def findings(self, recording: Recording, kept: Sequence[int] = (), doomed: Sequence[int] = ()) -> list[Finding]:
        """Cuts the power before and after each operation, and has everything judged that it may leave."""
        found: dict[str, Finding] = {}
        model = recording.before.copy()
        steps: list[str] = []
        for op in (None, *recording.ops):
            if op:
                steps.append(_described(model, op))
                model.apply(op)
            said = said_on(model)
            for words, tree in cuts(model, model.find(ROOT), self._random, _DRAWS):
                self.states += 1
                for broken in self._judge.broken(tree, said, kept, doomed):
                    found.setdefault(broken, Finding(broken, words, list(steps)))
        return list(found.values())


class _Taken:
    """A recording in the making."""

    def __init__(self, before: Model) -> None:
        self._before = before
        self.ops: Sequence[Op] = ()

    def __call__(self, *statuses: int) -> Recording:
        return Recording(self._before, self.ops, statuses)


def _described(model: Model, op: Op) -> str:
    """An operation in words, before it is applied."""
    path = model.path(op.inode) + (b"/" + op.name if op.name else b"")
    if path in {OUT, ERR}:
        return f"says: {op.data.decode('utf-8', 'backslashreplace').rstrip()}"
    return f"{op.kind} {path.decode('utf-8', 'backslashreplace')}"
