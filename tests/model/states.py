"""What the explorer knows: calls and replies, the content of the store, and the states of a search."""

from __future__ import annotations

from typing import Any, NamedTuple

from publish.domain.entry import Entry, to_text
from publish.domain.errors import FormatError, PublishError
from publish.domain.ports import Namespace, Page
from tests.support.fakes import FakeStore


class Call(NamedTuple):
    """An effect that an actor is about to have on the store."""

    method: str
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.method}({', '.join(map(_shown, self.arguments))})"


class Reply(NamedTuple):
    """What the store answered: a value, or an error that it raised."""

    value: Any
    error: PublishError | None

    @property
    def key(self) -> object:
        """Equal for replies that an actor cannot tell apart."""
        return repr(self)

    def __str__(self) -> str:
        return type(self.error).__name__ if self.error else _shown(self.value)


class Moment(NamedTuple):
    """Where an actor stands: what it said so far, and its next effect, or how it ended."""

    said: tuple[tuple[str, object], ...]
    call: Call | None
    failure: BaseException | None


class World(NamedTuple):
    """The content of the store."""

    names: tuple[frozenset[bytes], ...]
    """For each Namespace, in its order."""
    files: frozenset[tuple[bytes, bytes]]
    records: frozenset[tuple[tuple[Namespace, bytes], bytes]] = frozenset()
    """The content of each entry that has one."""

    @classmethod
    def of(cls, store: FakeStore) -> World:
        """The content of `store`."""
        return cls(
            tuple(frozenset(store.names[one]) for one in Namespace),
            frozenset(store.files.items()),
            frozenset((name, content) for name, content in store.records.items() if content),
        )

    def store(self) -> FakeStore:
        """A store with this content, free to be changed."""
        store = FakeStore()
        for namespace, names in zip(Namespace, self.names, strict=True):
            store.names[namespace] = set(names)
        store.files = dict(self.files)
        store.records = dict(self.records)
        return store

    def entries(self, namespace: Namespace) -> frozenset[bytes]:
        """The names in a namespace."""
        return self.names[list(Namespace).index(namespace)]


class Creation(NamedTuple):
    """A publication or an execution came to be."""

    namespace: Namespace
    name: bytes
    begun: frozenset[str]
    """The actors that had begun by then."""


REMEMBERED = (Namespace.PUB, Namespace.BEGIN)


class State(NamedTuple):
    """One point of the search. `actors` are places in each actor's table of moments."""

    world: World
    actors: tuple[int, ...]
    created: frozenset[Creation]
    """Every entry that was in one of the namespaces `REMEMBERED` at some time."""
    losses: int
    """How many more replies may be lost."""


class Step(NamedTuple):
    """One effect on the way to a state."""

    actor: str
    call: Call
    reply: Reply
    lost: bool

    @property
    def move(self) -> str:
        """What `Explorer.replay` takes: the actor, with a ! if the reply is lost."""
        return self.actor + "!" * self.lost

    def __str__(self) -> str:
        return f"{self.move:10} {self.call} -> {self.reply}"


def _shown(value: object) -> str:
    """A value for a list of steps: an entry's name as its numbers and its path."""
    if isinstance(value, Namespace):
        return to_text(value.value)
    if isinstance(value, bytes):
        try:
            entry = Entry.parse(value)
        except FormatError:
            return to_text(value)
        return f"<epoch {entry.epoch} step {entry.step} {to_text(entry.path)}>"
    if isinstance(value, Page):
        return _shown(value.names)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)
