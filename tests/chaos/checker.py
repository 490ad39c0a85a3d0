"""Reads a root without end, and says what must not be."""

from __future__ import annotations

import time

from publish.domain.entry import Entry
from tests.chaos.arena import KEEP, Arena
from tests.chaos.places import is_whole, log_of

# Seconds for which an entry may name a save that is gone: its publisher is about to take it back.
_PASSING = 20.0


def check_always(arena: Arena) -> None:
    """No entry names a save that is not whole. Where the latest goes back is noted, to be judged at the end."""
    latest: Entry | None = None
    # The pause leaves the processors to the actors.
    while not arena.over.wait(0.01):
        log = log_of(arena.place)
        arena.count("checks")
        if latest is not None and (not log or log[-1] < latest):
            arena.went_back.append(latest)
        if log:
            latest = log[-1]
        for entry in reversed(log):
            _check_entry(arena, entry)


def _check_entry(arena: Arena, entry: Entry) -> None:
    save = entry.path.decode()
    if is_whole(arena.place, save):
        return
    deadline = time.monotonic() + _PASSING
    while entry in log_of(arena.place):
        if is_whole(arena.place, save):
            return
        recorded = any(record.path == entry.path for record in log_of(arena.place, ".publish/prune"))
        is_latest = entry == max(log_of(arena.place), default=None)
        if is_latest or (not recorded and time.monotonic() > deadline):
            if entry in log_of(arena.place):
                arena.violate(f"an entry names a save that is not whole: {entry.name!r} {save} (latest: {is_latest})")
            return
        if recorded or arena.over.is_set():
            return


def check_at_the_end(arena: Arena) -> None:
    """When all is quiet, one prune leaves nothing over, and every kept save is whole.

    The latest never went back behind what was said to be published. A publisher that meets a removal of the same save
    under another epoch takes its entry back, and says nothing (race.1).
    """
    said = {line.split()[1] for line, _ in arena.published}
    for entry in arena.went_back:
        if entry.name.decode() in said:
            arena.violate(f"the latest went back behind {entry.name!r}, which was said to be published")
        arena.count("latest taken back")
    seen = {line.rpartition(", ")[2].rstrip(")") for line, _ in arena.published}
    ended = arena.run("prune", "-keep", str(KEEP))
    if ended.status != 0:
        arena.violate(f"the last prune ended with {ended.status}: {ended.err}")
    log = log_of(arena.place)
    if left := arena.place.names(".publish/prune"):
        arena.violate(f"the last prune left removal records: {left}")
    named = {entry.path.decode() for entry in log}
    for save in sorted({arena.place.relative(location) for location in seen} - named):
        if arena.place.names(save):
            arena.violate(f"a save that was published is in no entry and not removed: {save}")
    for save in named:
        if not is_whole(arena.place, save):
            arena.violate(f"a kept save is not whole: {save}")
    answer = arena.run("resolve")
    expected = log[-1].path.decode() if log else ""
    if arena.place.relative(answer.out.rstrip("\n")) != expected:
        arena.violate(f"resolve gives {answer.out!r}, not {expected}")
