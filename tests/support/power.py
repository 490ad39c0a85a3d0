"""Power cuts: a verb is recorded on the strict filesystem, cut after each operation, and what is left is judged."""

from __future__ import annotations

import base64
import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from tests.support.preloaded import Preloaded
from tests.support.program import CLEAN, PROGRAM
from tests.support.strict_fs import Stop, StrictMount
from tests.support.strict_model import Content, Model, Op, Tree, cuts

# The root and the program's words lie on one filesystem, so that what it said and what it did have one order.
ROOT = b"root"
OUT, ERR = b"words/out", b"words/err"

SAVES = b"exec/a"
MARKER = b"trainer_state.json"
_FILES = {MARKER: b'{"global_step": %d}', b"weights": b"w%d", b"deep/optimizer": b"o%d"}

_PATIENCE = 60.0  # seconds
# Mixtures drawn at random for each point in time, beside the ones that are always tried.
_DRAWS = 8


def save(step: int) -> bytes:
    """The path of a step's save below the root."""
    return SAVES + b"/checkpoint-%d" % step


def save_files(step: int) -> Tree:
    """A Trainer save, whole, by paths below the root."""
    return {save(step) + b"/" + name: content % step for name, content in _FILES.items()}


def entry(step: int, epoch: int = 1) -> bytes:
    """A publication's name (layout.1)."""
    return b"%020d-%020d-" % (epoch, step) + base64.b32encode(save(step)).rstrip(b"=")


def entry_path(name: bytes) -> bytes:
    """The path of the save that an entry names."""
    text = name.split(b"-")[2]
    return base64.b32decode(text + b"=" * (-len(text) % 8))


def filesystem(*trees: Tree) -> Model:
    """A filesystem with a root that holds `trees`, all of it durable, and a place for the program's words."""
    root = {ROOT + b"/" + path: content for tree in trees for path, content in tree.items()}
    return Model.of({ROOT + b"/exec": None, OUT: b"", ERR: b"", **root})


def unsynced(model: Model, tree: Tree) -> Model:
    """The filesystem with `tree` written to its root, and not synced."""
    for path, content in tree.items():
        model.add(ROOT + b"/" + path, content)
    return model


def published(*steps: int) -> Tree:
    """The log with these steps in it."""
    return {b"pub/" + entry(step): b"" for step in steps}


class Said(NamedTuple):
    """What the program has said until now."""

    published: frozenset[bytes]
    removed: frozenset[bytes]

    @classmethod
    def on(cls, model: Model) -> Said:
        words = b"".join(model.file(model.find(stream)).contents[-1] for stream in (OUT, ERR))
        entries = re.findall(rb"^(?:publish: .*)?(?:published|already published:?) (\d{20}-\d{20}-[A-Z2-7]+)", words, re.M)
        return cls(frozenset(entries), frozenset(re.findall(rb"^removed .*/root/(.*)$", words, re.M)))


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


class Outcome(NamedTuple):
    """What the program makes of what a cut left."""

    resolved: bytes
    status: int
    words: bytes
    tree: Tree


class Laboratory:
    """Records programs on the strict filesystem, and tries what a cut leaves on an ordinary one."""

    def __init__(self, mount: StrictMount, program: Preloaded, scratch: Path, seed: int) -> None:
        self._mount = mount
        self._program = program
        self._scratch = scratch
        self._random = random.Random(seed)
        self._outcomes: dict[tuple[tuple[bytes, Content], ...], Outcome] = {}
        self.states = 0

    @property
    def root(self) -> str:
        """The root's path where a program is recorded."""
        return str(self._mount.path / os.fsdecode(ROOT))

    def record(self, before: Model, *words: str, program: Sequence[str] = (PROGRAM,)) -> Recording:
        """Runs a verb to its end."""
        with self._recording(before) as recording:
            status = self._start([*program, *words]).wait(_PATIENCE)
        return recording(status)

    def record_watch(self, before: Model, *words: str, until: bytes = b"") -> Recording:
        """Runs a watch until it has said `until`, or only until it listens to signals; then it is told to stop."""
        with self._recording(before) as recording:
            process = self._start([PROGRAM, *words])
            end = monotonic() + _PATIENCE
            while not (until in self._words() if until else _listens(process.pid)):
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
    def _recording(self, before: Model, stop: Stop | None = None) -> Iterator[_Taken]:
        self._mount.load(before, stop)
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
        """Cuts the power before and after each operation, and judges everything that it may leave.

        `kept` are the steps whose entries were durable before and must stay; `doomed` those that a prune may remove.
        """
        found: dict[str, Finding] = {}
        model = recording.before.copy()
        steps: list[str] = []
        for op in (None, *recording.ops):
            if op:
                steps.append(_described(model, op))
                model.apply(op)
            said = Said.on(model)
            for words, tree in cuts(model, model.find(ROOT), self._random, _DRAWS):
                self.states += 1
                for broken in self._broken(tree, said, kept, doomed):
                    found.setdefault(broken, Finding(broken, words, list(steps)))
        return list(found.values())

    def _broken(self, tree: Tree, said: Said, kept: Sequence[int], doomed: Sequence[int]) -> Iterator[str]:
        """The rules that a state breaks, in words."""
        names = sorted(below(tree, b"pub"))
        for name in sorted((said.published | set(map(entry, kept))) - set(map(entry, doomed)) - set(names)):
            yield f"published, and not in the log: {_short(name)}"
        for name in names:
            if missing := [path for path, content in _whole(name).items() if tree.get(path) != content]:
                yield f"in the log, but its save lacks {missing[0].decode()}: {_short(name)}"
            if entry_path(name) in said.removed:
                yield f"said to be removed, and back in the log: {_short(name)}"
        for step in doomed:
            files = [path for path in save_files(step) if path in tree]
            if save(step) + b"/" + MARKER in files and len(files) < len(save_files(step)):
                yield f"half removed, and has its marker: {save(step).decode()}"
        outcome = self._outcome(tree)
        latest = entry_path(names[-1]) if names else b""
        if outcome.resolved != latest:
            yield f"resolve says {outcome.resolved!r} where {latest!r} is the latest"
        yield from _left_over(outcome, latest, doomed)

    def _outcome(self, tree: Tree) -> Outcome:
        """Puts the tree on an ordinary filesystem, and runs resolve and one more prune there."""
        key = tuple(tree.items())
        if key not in self._outcomes:
            shutil.rmtree(self._scratch, ignore_errors=True)
            _put(tree, os.fsencode(self._scratch))
            resolved = self._program.run(["resolve", "-checkpoint", str(self._scratch)])
            pruned = self._program.run(["prune", "-checkpoint", str(self._scratch), "-keep", "1"])
            self._outcomes[key] = Outcome(
                resolved.out.removesuffix(b"\n").removeprefix(os.fsencode(self._scratch) + b"/"),
                pruned.status,
                pruned.err,
                _taken_from(os.fsencode(self._scratch)),
            )
        return self._outcomes[key]


class _Taken:
    """A recording in the making."""

    def __init__(self, before: Model) -> None:
        self._before = before
        self.ops: Sequence[Op] = ()

    def __call__(self, *statuses: int) -> Recording:
        return Recording(self._before, self.ops, statuses)


def below(tree: Tree, folder: bytes) -> list[bytes]:
    """The names of the files directly in a folder of a tree."""
    files = (path.rpartition(b"/") for path, content in tree.items() if content is not None)
    return [name for above, _, name in files if above == folder]


def _listens(pid: int) -> bool:
    """Whether a process handles SIGTERM (proc(5))."""
    caught = re.search(r"^SigCgt:\t(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert caught
    return bool(int(caught[1], 16) & 1 << (signal.SIGTERM - 1))


def _whole(name: bytes) -> Tree:
    return save_files(int(name.split(b"-")[1]))


def _left_over(outcome: Outcome, latest: bytes, doomed: Sequence[int]) -> Iterator[str]:
    """What one more prune left that it should not have."""
    if outcome.status:
        yield f"one more prune ends with {outcome.status}: {outcome.words!r}"
    entries = below(outcome.tree, b"pub")
    if [entry_path(name) for name in entries] != ([latest] if latest else []):
        yield f"one more prune leaves in the log: {list(map(_short, entries))}"
    for step in doomed:
        if save(step) in outcome.tree:
            rest = [path.removeprefix(save(step) + b"/").decode() for path in save_files(step) if path in outcome.tree]
            yield f"one more prune leaves {save(step).decode()} with {', '.join(rest) or 'nothing in it'}"
    for path, content in outcome.tree.items():
        if content is not None and path.split(b"/")[0] not in {b"pub", b"exec"}:
            yield f"one more prune leaves a record: {path.decode()}"


def _put(tree: Tree, root: bytes) -> None:
    os.makedirs(root)
    for path, content in tree.items():
        if content is None:
            os.mkdir(root + b"/" + path)
        elif isinstance(content, str):
            os.symlink(content, root + b"/" + path)
        else:
            with open(root + b"/" + path, "wb") as file:
                file.write(content)


def _taken_from(root: bytes) -> Tree:
    tree: dict[bytes, Content] = {}
    for above, folders, files in os.walk(root):
        inside = above[len(root) + 1 :] + b"/" if above != root else b""
        tree.update({inside + name: None for name in folders} | {inside + name: b"" for name in files})
    return tree


def _described(model: Model, op: Op) -> str:
    """An operation in words, before it is applied."""
    path = model.path(op.inode) + (b"/" + op.name if op.name else b"")
    if path in {OUT, ERR}:
        return f"says: {op.data.decode('utf-8', 'backslashreplace').rstrip()}"
    return f"{op.kind} {path.decode('utf-8', 'backslashreplace')}"


def _short(name: bytes) -> str:
    """An entry in words."""
    epoch, step, _ = name.split(b"-")
    return f"epoch {int(epoch)}, step {int(step)}, {entry_path(name).decode()}"
