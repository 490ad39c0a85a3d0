"""What happens to a root, in threads that never stop: executions and zombies, prunes, late publishers, readers."""

from __future__ import annotations

import json
import signal
import sys
import threading

from tests.chaos.arena import KEEP, Arena
from tests.chaos.places import is_whole, log_of, step_of
from tests.chaos.trainer import NOT_RESUMABLE

TRAINER = [sys.executable, "-m", "tests.chaos.trainer"]


def executions(arena: Arena) -> None:
    """One after another, and sometimes a zombie beside the next."""
    zombies: list[threading.Thread] = []
    while not arena.over.is_set():
        arena.executions += 1
        number = arena.executions
        one = threading.Thread(target=_execute, args=(arena, number))
        one.start()
        if arena.chance(0.4):
            zombies.append(one)
            arena.count("zombies")
            arena.over.wait(arena.draw(1, 4))
        else:
            one.join()
    for zombie in zombies:
        zombie.join()


def _execute(arena: Arena, number: int) -> None:
    """A run of some seconds that is stopped or killed, frozen for a while before that or not."""
    keep = ("-keep", str(KEEP)) if arena.chance(0.5) else ()
    words = ("-framework", "hf", "-attempt", f"a-{number}", "-interval", "300ms", *keep, "--", *TRAINER)
    with arena.started("run", *words) as running:
        running.wait(arena.draw(1.5, 6))
        if arena.chance(0.3):
            running.signal(signal.SIGSTOP)
            arena.count("frozen")
            arena.over.wait(arena.draw(0.5, 3))
            running.signal(signal.SIGCONT)
            running.wait(arena.draw(0.2, 2))
        if arena.chance(0.5):
            running.signal(signal.SIGTERM)
            running.wait(arena.draw(0.1, 3))
    if running.ended.status == NOT_RESUMABLE and number == arena.executions:
        arena.violate(f"the newest execution cannot resume: {running.ended.err}")


def watches(arena: Arena) -> None:
    """A second watch of an execution that is under way, as after a restart of it alone."""
    while not arena.over.wait(arena.draw(0.5, 2)):
        number = arena.executions
        if number == 0:
            continue
        epoch = _epoch(arena, f"a-{number}")
        if epoch is None:
            continue
        words = ("-framework", "hf", "-attempt", f"a-{number}", "-epoch", epoch, "-interval", "200ms")
        with arena.started("watch", *words) as running:
            running.wait(arena.draw(0.2, 4))
            if arena.chance(0.5):
                running.signal(signal.SIGTERM)
                running.wait(5)


def _epoch(arena: Arena, attempt: str) -> str | None:
    """As another node learns it: from begin, or, once the save that it resumed from is gone, from the log."""
    began = arena.run("begin", "-attempt", attempt, "-json")
    if not began.killed and began.status == 0:
        return str(json.loads(began.out)["epoch"])
    of_attempt = [entry for entry in log_of(arena.place) if entry.path.startswith(f"exec/{attempt}/".encode())]
    return str(of_attempt[-1].epoch) if of_attempt and of_attempt[-1].epoch else None


def prunes(arena: Arena) -> None:
    """With one `-keep` for all, killed in a third of the cases."""
    while not arena.over.wait(arena.draw(0, 1.5)):
        arena.run("prune", "-keep", str(KEEP), patience=arena.draw(0.1, 1.0) if arena.chance(0.35) else 120)


def publishers(arena: Arena) -> None:
    """A user publishes an old save by hand, under its own epoch, while it may be removed."""
    while not arena.over.wait(arena.draw(0.3, 2)):
        log = log_of(arena.place)
        attempts = arena.place.folders("exec")
        if not log or not attempts:
            continue
        attempt = arena.choose(attempts)
        saves = [name for name in arena.place.folders(f"exec/{attempt}") if name.startswith("checkpoint-")]
        if not saves:
            continue
        save = f"exec/{attempt}/{arena.choose(saves)}"
        if not is_whole(arena.place, save):
            continue
        # Below every epoch of an execution, so that it is never the latest.
        words = ("-epoch", "0", f"{_root(arena)}/{save}", str(step_of(save)))
        arena.run("publish", *words, patience=arena.draw(0.1, 0.6) if arena.chance(0.3) else 120)


def readers(arena: Arena) -> None:
    """Resolves without end: nothing older than what was there before may come back."""
    while not arena.over.is_set():
        before = log_of(arena.place)
        answer = arena.run("resolve", *(("-verify",) if arena.chance(0.1) else ()))
        arena.count("resolves")
        if answer.status != 0 or answer.killed or not before:
            continue
        save = answer.out.rstrip("\n")
        if not save:
            arena.violate(f"resolve says nothing, although {before[-1].path.decode()} was published")
            continue
        entries = [
            entry for entry in [*before, *log_of(arena.place)] if arena.place.relative(save) == entry.path.decode()
        ]
        newest = max(entries, default=None)
        # One that came and went meanwhile has been removed because there are newer ones.
        if newest is not None and newest < before[-1] and not answer.err:
            arena.violate(f"resolve gives {save}, although {before[-1].path.decode()} was published before")


def _root(arena: Arena) -> str:
    return arena.flags[1]


ACTORS = (executions, watches, prunes, publishers, readers)
