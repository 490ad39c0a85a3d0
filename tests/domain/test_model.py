"""The whole log: executions that follow one another, zombies, prunes and kills, in any interleaving."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from publish.domain.entry import Entry, overlap
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.ports import Namespace, Store
from publish.domain.prune import prune
from publish.domain.resolve import latest
from publish.domain.retention import Policy
from publish.domain.root import PosixRoot
from publish.domain.watch import Watcher
from tests.support.fakes import FakeReport, FakeStore
from tests.support.scheduler import Actor

KEEP = 2


class Execution:
    """One run of the job: it writes saves, file by file, and a watch publishes them."""

    def __init__(self, epoch: int, first_step: int) -> None:
        self.epoch = epoch
        self.folder = b"exec/%d" % epoch
        self.step = first_step
        self.written = 0
        self.watcher: Actor | None = None

    def write_on(self, files: dict[bytes, bytes]) -> None:
        """One more write of the save under way: weights, half a state, the whole state."""
        path = self.folder + b"/checkpoint-%d" % self.step
        state = b'{"global_step": %d}' % self.step
        name, content = [(b"weights", b"w"), (b"trainer_state.json", state[:9]), (b"trainer_state.json", state)][
            self.written
        ]
        files[path + b"/" + name] = content
        self.written = (self.written + 1) % 3
        self.step += self.written == 0


def is_whole(files: dict[bytes, bytes], path: bytes) -> bool:
    return path + b"/weights" in files and files.get(path + b"/trainer_state.json", b"").endswith(b"}")


class World(RuleBasedStateMachine):
    """Rules are what happens in the field; invariants are what must hold after every effect."""

    @initialize()
    def begin(self) -> None:
        self.store = FakeStore(page_size=2)
        self.executions = [Execution(epoch=0, first_step=0)]
        for _ in range(12):
            self.executions[0].write_on(self.store.files)
        self.prunes: list[Actor] = []
        self.highest_epoch = -1
        self.ever_published: set[Entry] = set()

    def actors(self) -> list[Actor]:
        watchers = [execution.watcher for execution in self.executions if execution.watcher]
        return [actor for actor in (*watchers, *self.prunes) if not actor.ended]

    @precondition(lambda self: len(self.executions) < 4)
    @rule()
    def a_new_execution_starts_and_the_old_ones_may_live_on(self) -> None:
        last = latest(self.store)
        self.executions.append(Execution(len(self.executions), last.step if last else 0))

    @rule(data=st.data())
    def training_goes_on(self, data: st.DataObject) -> None:
        execution = data.draw(st.sampled_from(self.executions))
        for _ in range(data.draw(st.sampled_from([1, 3, 12]))):
            execution.write_on(self.store.files)

    @precondition(lambda self: any(execution.watcher is None for execution in self.executions))
    @rule(data=st.data())
    def a_watch_begins(self, data: st.DataObject) -> None:
        execution = data.draw(st.sampled_from([one for one in self.executions if one.watcher is None]))

        def work(store: Store) -> None:
            watch = Watcher(
                store, FakeReport(), PosixRoot(b"/ckpt"), FRAMEWORKS["hf"], execution.folder, execution.epoch
            )
            watch.begin()
            while True:
                watch.scan()

        execution.watcher = Actor(self.store, work)

    @precondition(lambda self: sum(not one.ended for one in self.prunes) < 2)
    @rule()
    def a_prune_begins(self) -> None:
        self.prunes.append(Actor(self.store, prune_all))

    @precondition(lambda self: self.actors())
    @rule(data=st.data(), effects=st.sampled_from([1, 2, 5, 30]))
    def an_actor_moves_on(self, data: st.DataObject, effects: int) -> None:
        actor = data.draw(st.sampled_from(self.actors()))
        for _ in range(effects):
            if not actor.ended:
                actor.step()
                self.everything_holds()

    @precondition(lambda self: self.actors())
    @rule(data=st.data())
    def an_actor_is_killed(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.actors())).kill()

    @invariant()
    def everything_holds(self) -> None:
        assert [
            actor.failure
            for actor in (*self.prunes, *(e.watcher for e in self.executions if e.watcher))
            if actor.failure
        ] == []
        entries = {Entry.parse(name) for name in self.store.names[Namespace.PUB]}
        self.ever_published |= entries
        last = latest(self.store)
        # E: an older execution never wins again.
        assert (last.epoch if last else -1) >= self.highest_epoch
        self.highest_epoch = last.epoch if last else -1
        # prune.1, prune.2: all that an entry names is there, so the latest is whole.
        for entry in entries:
            assert is_whole(self.store.files, entry.path)

    def teardown(self) -> None:
        """prune.7: all actors killed, one more prune leaves nothing over."""
        if not hasattr(self, "store"):
            return
        for actor in self.actors():
            actor.kill()
        prune_all(self.store)
        self.everything_holds()
        kept = {Entry.parse(name) for name in self.store.names[Namespace.PUB]}
        assert len(kept) == min(KEEP, len(self.ever_published))
        assert self.store.names[Namespace.PRUNE] == set()
        for entry in self.ever_published:
            needed = any(overlap(entry.path, other.path) for other in kept)
            assert needed or not self.store.save_exists(entry.path)


def prune_all(store: Store) -> None:
    assert prune(store, FakeReport(), Policy(KEEP), map)


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
