"""What prune keeps and what it removes, each with its reason. Pure: gathered before, applied after."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from itertools import accumulate
from typing import NamedTuple

from publish.domain.entry import Entry, overlap


class RetentionResult(NamedTuple):
    """The log in two: both in the log's order."""

    kept: list[Entry]
    removed: list[Entry]


def apply_retention(log: Iterable[Entry], keep: int) -> RetentionResult:
    """The latest `keep` (at least 1) entries are kept, so the latest always is."""
    ordered = sorted(log)
    cut = max(0, len(ordered) - keep)
    return RetentionResult(ordered[cut:], ordered[:cut])


class Reason(Enum):
    """Why a save's folder goes or stays."""

    UNREFERENCED = "no entry needs it"
    REFERENCED = "an entry that remains names it, a folder inside it or a folder around it"
    RESERVED = "it holds publish's own records"


class Folder(NamedTuple):
    """A save that a removed entry named, and what becomes of it."""

    path: bytes
    records: list[Entry]
    """The removals that wait for this one."""
    reason: Reason


def plan(removals: Collection[Entry], remaining: Iterable[Entry]) -> list[Folder]:
    """What becomes of each save that `removals` named; inner ones before outer, else in their order."""
    needed = _ReferencedPaths(entry.path for entry in remaining)
    records: dict[bytes, list[Entry]] = {}
    for entry in sorted(removals):
        records.setdefault(entry.path, []).append(entry)
    folders = [Folder(path, named, _reason(path, needed)) for path, named in records.items()]
    return sorted(folders, key=lambda folder: -folder.path.count(b"/"))


def _reason(path: bytes, needed: _ReferencedPaths) -> Reason:
    if overlap(path, b"prune"):
        return Reason.RESERVED
    return Reason.REFERENCED if path in needed else Reason.UNREFERENCED


class _ReferencedPaths:
    """The paths that overlap one of some saves: answers in the depth of a path, not in their number."""

    def __init__(self, saves: Iterable[bytes]) -> None:
        self._saves = set(saves)
        self._around = {above for save in self._saves for above in _prefixes(save)}

    def __contains__(self, path: bytes) -> bool:
        return path in self._around or not self._saves.isdisjoint(_prefixes(path))


def _prefixes(path: bytes) -> Iterable[bytes]:
    """The path itself and every folder around it."""
    return accumulate(path.split(b"/"), lambda above, name: above + b"/" + name)
