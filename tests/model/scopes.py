"""What the explorer explores: roots, actors and the rules that hold in every state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from itertools import permutations

from publish.domain.entry import Entry, overlap
from publish.domain.errors import ConfigError
from publish.domain.executions import resumed_by_newest
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.ports import Namespace, Store
from publish.domain.prune import Guards, prune
from publish.domain.publish import publish_save
from publish.domain.removal import RETRACTED
from publish.domain.retention import Policy
from publish.domain.retract import retract, retract_and_delete
from publish.domain.root import PosixRoot
from publish.domain.watch import Watcher
from tests.model.explorer import Check, Program, View
from tests.model.states import World
from tests.support.fakes import FakeReport, FakeStore
from tests.support.retrying import retrying

SAVES = b"exec/a"
# How the names of actors begin that remove what was published.
_REMOVERS = ("prune", "retract")


def save_path(step: int) -> bytes:
    return SAVES + b"/checkpoint-%d" % step


def entry(epoch: int, step: int) -> Entry:
    return Entry.of(epoch, step, save_path(step))


def root_with(
    steps: range, *, published: bool = True, unpublished: tuple[int, ...] = (), removing: tuple[int, ...] = ()
) -> World:
    """A root of epoch 1. `removing`: a prune was killed after it had removed the entries of these steps."""
    store = FakeStore()
    for step in steps:
        store.files[save_path(step) + b"/weights"] = b"w"
        store.files[save_path(step) + b"/trainer_state.json"] = b'{"global_step": %d}' % step
        if published and step not in unpublished:
            namespace = Namespace.PRUNE if step in removing else Namespace.PUB
            store.names[namespace].add(entry(1, step).name)
    return World.of(store)


def pruning(keep: int) -> Program:
    def program(store: Store, report: FakeReport) -> None:
        prune(retrying(store), report, Policy(keep), map, Guards(partial(resumed_by_newest, store)))

    return program


def publishing(epoch: int, step: int) -> Program:
    def program(store: Store, report: FakeReport) -> None:
        publish_save(retrying(store), report, entry(epoch, step))

    return program


def retracting(step: int) -> Program:
    """Takes back the save of a step, and deletes it."""

    def program(store: Store, report: FakeReport) -> None:
        retract_and_delete(retrying(store), report, save_path(step), map)

    return program


def retracting_only(step: int) -> Program:
    """Takes back the save of a step, which stays."""

    def program(store: Store, report: FakeReport) -> None:
        retract(retrying(store), report, save_path(step))

    return program


def watching(epoch: int, scans: int = 1) -> Program:
    def program(store: Store, report: FakeReport) -> None:
        watcher = Watcher(retrying(store), report, PosixRoot(b"/ckpt"), FRAMEWORKS["hf"], SAVES, epoch)
        watcher.begin()
        for _ in range(scans):
            watcher.scan()

    return program


def rules(initial: World, retracted: int | None = None) -> Check:
    """The rules for a root that began as `initial`. The names of prunes begin with `prune`.

    `retracted`: the step whose save an actor takes back.
    """
    first = {Entry.parse(name) for name in initial.entries(Namespace.PUB)}
    path = None if retracted is None else save_path(retracted)

    def check(view: View) -> str | None:
        said = {one for moment in view.moments.values() for what, one in moment.said if what == "published"}
        promised = first | {one for one in said if isinstance(one, Entry)}
        wanted = {one for one in promised if one.path != path}
        return (
            _no_prune_fails(view)
            or _what_was_published_is_there(view, promised)
            or _the_newest_is_not_lost(view.world, wanted)
            or _one_more_prune_finishes_a_retraction(view.world)
            or _one_more_prune_leaves_nothing_over(
                view.world,
                view.published(),
                _unannounced(view, promised),
                path if "retract only" in view.moments else None,
            )
        )

    return check


def _no_prune_fails(view: View) -> str | None:
    """prune.8: a prune beside others ends without an error."""
    for name, moment in view.moments.items():
        if name.startswith("prune") and moment.failure is not None:
            return f"{name} failed: {moment.failure}"
    return None


def _what_was_published_is_there(view: View, promised: set[Entry]) -> str | None:
    """race.3: until a prune removes it that began after the entry was created."""
    for one in promised:
        if one.name in view.world.entries(Namespace.PUB) and is_whole(view.world, one.path):
            continue
        created = [creation.begun for creation in view.created if creation.name == one.name]
        if not any(actor.startswith(_REMOVERS) and actor not in begun for actor in view.begun for begun in created):
            return f"published, and gone without a prune that began afterwards: {_shown(one)}"
    return None


def _the_newest_is_not_lost(world: World, promised: set[Entry]) -> str | None:
    """prune.1: the latest publication always stays."""
    newest = _newest_whole(world)
    if promised and (newest is None or newest < max(promised)):
        return f"the newest publication is lost: {_shown(max(promised))}"
    return None


@cache
def _newest_whole(world: World) -> Entry | None:
    whole = (one for one in map(Entry.parse, world.entries(Namespace.PUB)) if is_whole(world, one.path))
    return max(whole, default=None)


@cache
def _one_more_prune_leaves_nothing_over(
    world: World, ever_published: frozenset[Entry], unannounced: frozenset[Entry], may_stay: bytes | None
) -> str | None:
    """prune.7, race.2: whatever was killed, one more prune leaves the log, its saves and nothing else.

    `may_stay`: a save that was taken back without being removed (retract.1).
    """
    store = world.store()
    prune(retrying(store), FakeReport(), Policy(1), map)
    kept = {Entry.parse(name) for name in store.names[Namespace.PUB]}
    left = World.of(store)
    for one in ever_published:
        if (
            one.path != may_stay
            and store.save_exists(one.path)
            and not any(overlap(one.path, other.path) for other in kept)
        ):
            return f"one more prune leaves a save that no entry names: {_shown(one)}"
    for one in kept - unannounced:
        if not is_whole(left, one.path):
            return f"after one more prune an entry is without its save: {_shown(one)}"
    for record in map(Entry.parse, store.names[Namespace.PRUNE]):
        if record not in kept:
            return f"one more prune leaves a removal record: {_shown(record)}"
    return None


@cache
def _one_more_prune_finishes_a_retraction(world: World) -> str | None:
    """retract.1: also if a prune would keep what is retracted."""
    store = world.store()
    prune(retrying(store), FakeReport(), Policy(9), map)
    published = {Entry.parse(name).path for name in store.names[Namespace.PUB]}
    for name in world.entries(Namespace.PRUNE):
        record = Entry.parse(name)
        is_retracted = ((Namespace.PRUNE, name), RETRACTED) in world.records
        if is_retracted and (record.path in published or store.save_exists(record.path)):
            return f"one more prune does not finish a retraction: {_shown(record)}"
    return None


def the_end_is_in_order(initial: World, programs: Mapping[str, Program]) -> Check:
    """Once every actor has ended, the log and the saves are as if they had worked one after another.

    If no publication is left, one of the actors says so.
    """
    in_order = [_after(initial, order) for order in permutations(programs.values())]

    def check(view: View) -> str | None:
        if any(moment.call is not None for moment in view.moments.values()):
            return None
        log = view.world.entries(Namespace.PUB)
        if (log, view.world.files) not in in_order:
            return f"no order of the actors leaves this log: {[_shown(Entry.parse(name)) for name in log]}"
        said = {what for moment in view.moments.values() for what, _ in moment.said}
        return None if log or "nothing left" in said else "no publication is left, and no actor says so"

    return check


def _after(initial: World, order: Iterable[Program]) -> tuple[frozenset[bytes], frozenset[tuple[bytes, bytes]]]:
    store = initial.store()
    for program in order:
        with suppress(ConfigError):  # a save that is not published any more is not retracted
            program(store, FakeReport())
    world = World.of(store)
    return world.entries(Namespace.PUB), world.files


def _unannounced(view: View, promised: set[Entry]) -> frozenset[Entry]:
    """Entries that a publisher created and was killed before it could announce them or take them back."""
    under_way = any(
        moment.call is not None for name, moment in view.moments.items() if name.startswith(("publish", "watch"))
    )
    return frozenset(view.published() - promised) if under_way else frozenset()


def is_whole(world: World, path: bytes) -> bool:
    names = {name for name, _ in world.files}
    return {path + b"/weights", path + b"/trainer_state.json"} <= names


def _shown(one: Entry) -> str:
    return f"epoch {one.epoch} step {one.step}"
