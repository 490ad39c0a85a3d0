"""Explores every interleaving of several use cases over one store.

The explorer runs the real use cases. Each actor is one call of a use case with a store that
suspends it before every effect, so the explorer decides which actor takes the next step. A
use case is deterministic, so the replies that an actor has received determine where it stands:
the explorer resumes an actor by running it again from the start with the replies so far.

A state is the content of the store and, for each actor, the replies it has received. A state
that was seen before is not explored again, so the search ends. An actor that is killed is one
that takes no further step, and every state is checked as if all its actors were killed there:
a search that visits every state has killed every actor before every effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

from publish.domain.entry import Entry
from publish.domain.errors import OutcomeUnknown, PublishError
from publish.domain.ports import Namespace, Store
from tests.model.states import REMEMBERED, Call, Creation, Moment, Reply, State, Step, World
from tests.support.fakes import FakeReport, FakeStore

Program = Callable[[Store, FakeReport], None]
"""One actor's whole work."""


class CounterExample(AssertionError):
    """A reachable state in which a rule does not hold. The text lists the steps that lead to it."""


class _Suspended(BaseException):
    """The actor has come to an effect that has not happened yet."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.call = call


class _ScriptedStore:
    """Answers from a list of replies, then suspends the actor."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = iter(replies)

    def check_name_length(self, name: bytes) -> None:
        """No effect, and none is needed: every name in the scopes is short."""

    def real_path(self, path: bytes) -> bytes:
        """No effect: the scopes have no symbolic links."""
        return path

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def answer(*arguments: Any) -> Any:  # noqa: ANN401  (any of the port's methods)
            reply = next(self._replies, None)
            if reply is None:
                raise _Suspended(Call(method, arguments))
            if reply.error is not None:
                raise reply.error
            return reply.value

        return answer


class _Actor:
    """A program and every moment of it that the search has met, each reached by its replies."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._moments: list[tuple[tuple[Reply, ...], Moment]] = []
        self._next: dict[tuple[int, object], int] = {}
        self._ends: dict[object, int] = {}
        self._add(())

    def __getitem__(self, place: int) -> Moment:
        return self._moments[place][1]

    def after(self, place: int, reply: Reply) -> int:
        """The place that the actor comes to when its effect is answered so."""
        key = (place, reply.key)
        if key not in self._next:
            self._next[key] = self._add((*self._moments[place][0], reply))
        return self._next[key]

    def _add(self, replies: tuple[Reply, ...]) -> int:
        report = FakeReport()
        call, failure = None, None
        try:
            self._program(_ScriptedStore(replies), report)
        except _Suspended as suspended:
            call = suspended.call
        except PublishError as error:
            failure = error
        moment = Moment(tuple(report.said), call, failure)
        self._moments.append((replies, moment))
        place = len(self._moments) - 1
        # Once an actor has ended, what it received no longer matters.
        return place if call else self._ends.setdefault(repr(moment), place)


class View(NamedTuple):
    """What a check may look at."""

    world: World
    created: frozenset[Creation]
    moments: Mapping[str, Moment]
    begun: frozenset[str]

    def published(self) -> frozenset[Entry]:
        """Every entry that was in `pub/` at some time."""
        return _published(self.created)


@cache
def _published(created: frozenset[Creation]) -> frozenset[Entry]:
    return frozenset(Entry.parse(one.name) for one in created if one.namespace is Namespace.PUB)


Check = Callable[[View], str | None]
"""Says what is wrong, or None."""


class Explorer:
    """A breadth-first search, so that a counterexample is as short as can be."""

    def __init__(self, world: World, programs: Mapping[str, Program], check: Check, *, losses: int = 0) -> None:
        """`losses`: how many replies to writes may be lost in one run.

        Actors with the very same program that follow one another are interchangeable: of the states that differ
        only in which of them stands where, one is visited. So `check` must not tell them apart.
        """
        actors = {id(program): _Actor(program) for program in programs.values()}
        self._names = list(programs)
        self._actors = [actors[id(program)] for program in programs.values()]
        self._check = check
        created = frozenset(Creation(*one, frozenset()) for one in _new(World.of(FakeStore()), world))
        self._start = State(world, (0,) * len(self._actors), created, losses)
        self._came_from: dict[State, tuple[State, Step] | None] = {self._start: None}
        self._effects: dict[tuple[World, _Actor, int], tuple[Reply, World, list[tuple[Namespace, bytes]]]] = {}

    def run(self) -> int:
        """Visits every state; returns how many there are. Raises CounterExample."""
        queue = deque([self._start])
        while queue:
            state = queue.popleft()
            self._examine(state)
            for step, following in self._steps(state):
                if following not in self._came_from:
                    self._came_from[following] = (state, step)
                    queue.append(following)
        return len(self._came_from)

    def replay(self, moves: str) -> None:
        """Follows the moves that a counterexample printed, and checks every state on the way. Raises CounterExample."""
        state = self._start
        self._examine(state)
        for move in moves.split():
            step, following = next(one for one in self._steps(state) if one[0].move == move)
            self._came_from[following] = (state, step)
            self._examine(following)
            state = following

    def _examine(self, state: State) -> None:
        moments = {
            name: actor[place] for name, actor, place in zip(self._names, self._actors, state.actors, strict=True)
        }
        view = View(state.world, state.created, moments, self._begun(state.actors))
        fault = self._check(view)
        if fault is not None:
            path = self._path(state)
            steps = "\n".join(f"{number:3}. {step}" for number, step in enumerate(path, 1))
            moves = " ".join(step.move for step in path)
            raise CounterExample(f"{fault}\nafter these steps:\n{steps}\nreplay: {moves}")

    def _begun(self, places: tuple[int, ...]) -> frozenset[str]:
        return frozenset(name for name, place in zip(self._names, places, strict=True) if place)

    def _path(self, state: State) -> list[Step]:
        steps: list[Step] = []
        while (origin := self._came_from[state]) is not None:
            state, step = origin
            steps.append(step)
        return steps[::-1]

    def _steps(self, state: State) -> Iterator[tuple[Step, State]]:
        for number, (actor, place) in enumerate(zip(self._actors, state.actors, strict=True)):
            call = actor[place].call
            if call is None:
                continue
            reply, world, new = self._perform(state.world, actor, place, call)
            created = state.created
            if new:
                begun = self._begun(state.actors)
                created = created.union(Creation(namespace, name, begun) for namespace, name in new)
            replies = [(reply, False)]
            if state.losses and world != state.world:
                replies.append((Reply(None, OutcomeUnknown("the reply is lost")), True))
            for received, lost in replies:
                places = self._moved(state.actors, number, actor.after(place, received))
                yield (
                    Step(self._names[number], call, reply, lost),
                    State(world, places, created, state.losses - lost),
                )

    def _moved(self, places: tuple[int, ...], number: int, place: int) -> tuple[int, ...]:
        """The places after one actor's step, those of interchangeable actors in order."""
        moved = (*places[:number], place, *places[number + 1 :])
        return tuple(
            each
            for _, group in groupby(zip(self._actors, moved, strict=True), key=lambda one: id(one[0]))
            for each in sorted(place for _, place in group)
        )

    def _perform(
        self, world: World, actor: _Actor, place: int, call: Call
    ) -> tuple[Reply, World, list[tuple[Namespace, bytes]]]:
        """What the store answers, what it holds then, and what came to be. Remembered: it is asked again and again."""
        key = (world, actor, place)
        if key not in self._effects:
            store = world.store()
            reply = _answer(store, call)
            after = World.of(store)
            self._effects[key] = reply, after, list(_new(world, after))
        return self._effects[key]


def _answer(store: FakeStore, call: Call) -> Reply:
    try:
        return Reply(getattr(store, call.method)(*call.arguments), None)
    except PublishError as error:
        return Reply(None, error)


def _new(before: World, after: World) -> Iterator[tuple[Namespace, bytes]]:
    for namespace in REMEMBERED:
        for name in after.entries(namespace) - before.entries(namespace):
            yield namespace, name
