"""The rules of power loss: what was said is so, entries name whole saves, and one more prune leaves nothing over."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.power_trees import MARKER, below, entry, entry_path, put, save, save_files, tree_at
from tests.support.preloaded_program import Preloaded
from tests.support.strict_model import Content, Tree


class Said(NamedTuple):
    """What the program has said until now."""

    published: frozenset[bytes]
    removed: frozenset[bytes]

    @classmethod
    def read(cls, words: bytes) -> Said:
        """Reads it from what stands on stdout and stderr."""
        entries = re.findall(
            rb"^(?:publish: .*)?(?:published|already published:?) (\d{20}-\d{20}-[A-Z2-7]+)", words, re.MULTILINE
        )
        return cls(frozenset(entries), frozenset(re.findall(rb"^removed .*/root/(.*)$", words, re.MULTILINE)))


class Outcome(NamedTuple):
    """What the program makes of what a cut left."""

    resolved: bytes
    status: int
    words: bytes
    tree: Tree


class Judge:
    """Looks at what a cut left, and tries what the program makes of it."""

    def __init__(self, program: Preloaded, scratch: Path) -> None:
        """`scratch` is where trees are put; nothing of value stands there."""
        self._program = program
        self._scratch = scratch
        self._outcomes: dict[tuple[tuple[bytes, Content], ...], Outcome] = {}

    def broken(self, tree: Tree, said: Said, kept: Sequence[int] = (), doomed: Sequence[int] = ()) -> Iterator[str]:
        """The rules that a state breaks, in words.

        `kept` are the steps whose entries were durable before and must stay; `doomed` those that a prune may remove.
        """
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
            put(tree, os.fsencode(self._scratch))
            resolved = self._program.run(["resolve", "-checkpoint", str(self._scratch)])
            pruned = self._program.run(["prune", "-checkpoint", str(self._scratch), "-keep", "1"])
            self._outcomes[key] = Outcome(
                resolved.out.removesuffix(b"\n").removeprefix(os.fsencode(self._scratch) + b"/"),
                pruned.status,
                pruned.err,
                tree_at(os.fsencode(self._scratch)),
            )
        return self._outcomes[key]


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


def _short(name: bytes) -> str:
    """An entry in words."""
    epoch, step, _ = name.split(b"-")
    return f"epoch {int(epoch)}, step {int(step)}, {entry_path(name).decode()}"
