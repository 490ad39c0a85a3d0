"""What prune keeps, each with its reason. Pure: the log is read before, and applied after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import Enum
from itertools import accumulate, islice

from publish.domain.entry import Entry
from publish.domain.light_typing import NamedTuple


class Policy(NamedTuple):
    """Which publications stay: the `keep` newest (at least 1), and steps that are multiples of `keep_every`."""

    keep: int
    keep_every: int | None = None


class Reason(Enum):
    """Why a save stays. The value completes "kept <save>: "."""

    LATEST = "the latest publication"
    NEWEST = "within -keep {keep}"
    MULTIPLE = "its step is a multiple of {keep_every}"
    RESUMED = "the newest execution resumed from it and has not published yet"
    OVERLAP = "a publication that stays names it, a path in it or a path around it"
    ALIAS = "a publication that stays leads to it through a symbolic link"
    LINK = "a symbolic link is on its path"


class RetentionResult(NamedTuple):
    """The log divided in two, each in the log's order. `kept` gives the reasons why an entry stays."""

    kept: dict[Entry, list[Reason]]
    removed: list[Entry]


def apply_retention(
    log: Iterable[Entry],
    policy: Policy,
    removals: Collection[Entry] = (),
    resumed: Entry | None = None,
    is_whole: Callable[[Entry], bool] | None = None,
) -> RetentionResult:
    """Decides which entries stay. The latest entry always does.

    `removals`: the removal records. An entry whose path is on record does not count as one of the newest, since its
    publisher may have to take it back (race.1).
    `resumed`: the entry that the newest execution resumed from, until it has published (prune.12).
    `is_whole`: only whole saves count as the newest, and everything newer than the oldest of them stays (verify.4).
    It is asked newest first, as often as needed. Nothing is removed if it is never true.
    """
    ordered = sorted(log)
    recorded = {removal.path for removal in removals}
    counting = (entry for entry in reversed(ordered) if entry.path not in recorded)
    newest = list(islice(filter(is_whole, counting) if is_whole else counting, policy.keep))
    enough = bool(newest) if is_whole else len(newest) == policy.keep
    kept: dict[Entry, list[Reason]] = {}
    for entry in ordered:
        rules = {
            Reason.LATEST: entry == ordered[-1],
            Reason.NEWEST: not enough or entry >= newest[-1],
            Reason.MULTIPLE: policy.keep_every is not None and entry.step % policy.keep_every == 0,
            Reason.RESUMED: entry == resumed,
        }
        if reasons := [reason for reason, holds in rules.items() if holds]:
            kept[entry] = reasons
    return RetentionResult(kept, [entry for entry in ordered if entry not in kept])


class PlannedRemoval(NamedTuple):
    """A save with removal records, and whether it goes."""

    path: bytes
    records: list[Entry]
    """The removals that wait for this one."""
    stays: Reason | None
    """None: no remaining entry refers to the save, so it goes."""


def plan(
    removals: Collection[Entry], remaining: Iterable[Entry], real_path: Callable[[bytes], bytes | None]
) -> list[PlannedRemoval]:
    """What becomes of each save that `removals` named; inner saves before outer ones, else in the log's order.

    `real_path(path)`: where a remaining entry's path leads below the root (alias.1); None: nowhere below it.
    """
    paths = {entry.path for entry in remaining}
    named = _Paths(paths)
    led_to = _Paths({real for path in paths if (real := real_path(path)) is not None})
    records: dict[bytes, list[Entry]] = {}
    for entry in sorted(removals):
        records.setdefault(entry.path, []).append(entry)
    planned = [
        PlannedRemoval(path, of_path, Reason.OVERLAP if path in named else Reason.ALIAS if path in led_to else None)
        for path, of_path in records.items()
    ]
    return sorted(planned, key=lambda removal: -removal.path.count(b"/"))


class _Paths:
    """Tells which paths overlap one of some saves, in time that grows with a path's depth, not with their number."""

    def __init__(self, saves: set[bytes]) -> None:
        self._saves = saves
        self._ancestors = {ancestor for save in saves for ancestor in _prefixes(save)}

    def __contains__(self, path: bytes) -> bool:
        return path in self._ancestors or not self._saves.isdisjoint(_prefixes(path))


def _prefixes(path: bytes) -> Iterable[bytes]:
    """The path itself and every folder around it."""
    return accumulate(path.split(b"/"), lambda above, name: above + b"/" + name)
