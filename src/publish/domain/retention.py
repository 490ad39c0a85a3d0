"""What prune keeps and removes, and why. Pure decisions: prune gathers the input and applies the result."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from itertools import accumulate

from publish.domain.entry import Entry, overlap
from publish.domain.light_typing import NamedTuple


class RetentionResult(NamedTuple):
    """The log split in two, each part in the log's order."""

    kept: list[Entry]
    removed: list[Entry]


def apply_retention(log: Iterable[Entry], keep: int) -> RetentionResult:
    """The latest `keep` (at least 1) entries are kept, so the latest always is."""
    ordered = sorted(log)
    cut = max(0, len(ordered) - keep)
    return RetentionResult(ordered[cut:], ordered[:cut])


class Reason(Enum):
    """Why a save is removed or stays."""

    UNREFERENCED = "no entry refers to it"
    REFERENCED = "a remaining entry names it, a folder inside it or a folder around it"
    RESERVED = "it holds publish's own records"


class PlannedRemoval(NamedTuple):
    """A save that removed entries named, and what happens to it."""

    path: bytes
    records: list[Entry]
    """The removed entries; their records can be dropped once the save is gone."""
    reason: Reason


def plan(removals: Collection[Entry], remaining: Iterable[Entry]) -> list[PlannedRemoval]:
    """What happens to each save that `removals` named: inner saves before outer ones, otherwise in the log's order."""
    referenced = _ReferencedPaths(entry.path for entry in remaining)
    records: dict[bytes, list[Entry]] = {}
    for entry in sorted(removals):
        records.setdefault(entry.path, []).append(entry)
    planned = [PlannedRemoval(path, named, _reason(path, referenced)) for path, named in records.items()]
    return sorted(planned, key=lambda removal: -removal.path.count(b"/"))


def _reason(path: bytes, referenced: _ReferencedPaths) -> Reason:
    if overlap(path, b"prune"):
        return Reason.RESERVED
    return Reason.REFERENCED if path in referenced else Reason.UNREFERENCED


class _ReferencedPaths:
    """The paths that overlap one of the saves. A look-up costs the depth of the path, not the number of saves."""

    def __init__(self, saves: Iterable[bytes]) -> None:
        self._saves = set(saves)
        self._ancestors = {above for save in self._saves for above in _prefixes(save)}

    def __contains__(self, path: bytes) -> bool:
        return path in self._ancestors or not self._saves.isdisjoint(_prefixes(path))


def _prefixes(path: bytes) -> Iterable[bytes]:
    """The path itself and every folder that contains it."""
    return accumulate(path.split(b"/"), lambda above, name: above + b"/" + name)
