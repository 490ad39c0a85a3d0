"""What the domain asks of the world. The docstrings here are the contract; adapters say only how.

Paths are bytes relative to the root, names are bytes as they stand in `pub/`, times are seconds.
Each call of a Store is one attempt: it does not wait, does not try again, and where it raises
one of `errors.StoreFault` the class says whether anything was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar

from publish.domain.entry import Entry
from publish.domain.errors import PublishError, StoreFault

A = TypeVar("A")
B = TypeVar("B")


class Namespace(Enum):
    """A folder of names directly below the root."""

    PUB = b"pub"
    PRUNE = b"prune"


class Page(NamedTuple):
    """Part of a listing. `after` goes into the next call; None: this was the last part."""

    names: Sequence[bytes]
    after: str | None


class Removal(NamedTuple):
    """What one call of `remove_tree` did: whether it found anything, and whether some of it is left."""

    found: bool
    more: bool


class Store(Protocol):
    """The checkpoint root."""

    def list_entries(self, area: Namespace, after: str | None) -> Page:
        """What stands in an area, in no order, foreign names included.

        An area that is not there has no names. A name that stood there before the first page
        was asked for and still does after the last is on exactly one page.
        Raises FormatError for an area or a member that cannot be one (L4, L5), and ConfigError,
        or PermanentFault where only the store can tell, when the root itself is gone.
        """

    def check_name_length(self, name: bytes) -> None:
        """Raises ConfigError, saying the limit, if no entry of this name fits (L8). No request."""

    def create(self, area: Namespace, name: bytes) -> None:
        """Makes the empty `name`, exclusively: of any number of racers exactly one returns.

        Durable on return, and also on AlreadyExists. Makes the area if need be.
        Raises AlreadyExists, Conflict, OutcomeUnknown (perhaps written), or what stopped it.
        """

    def remove(self, area: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """Removes names (at most 1,000); a name that is not there is no fault. Idempotent.

        Durable on return for all but those it returns, each with what stopped it.
        Raises where the request as a whole failed (some names may be gone).
        """

    def save_exists(self, path: bytes) -> bool:
        """Whether something is there to publish: a folder or a file (publish.2)."""

    def list_directories(self, path: bytes, after: str | None) -> Page:
        """Names of the folders directly in `path` (b"": the root); links are none of them.

        A `path` that is not there has none. Raises ConfigError when the root is gone, or
        `path` is no folder.
        """

    def exists(self, path: bytes) -> bool:
        """Whether anything stands at a path: a file, or whatever else the store can hold."""

    def size(self, path: bytes) -> int | None:
        """The bytes of a regular file; None if there is none of that name."""

    def read(self, path: bytes) -> Iterator[bytes] | None:
        """A regular file's content, in parts; None if nothing is there. Parts may raise as well.

        Raises FormatError for what is not a regular file or cannot be read.
        """

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        """Removes a folder with all below it, or a file, as far as one call goes. Idempotent.

        The files `first` directly in the folder are gone, durably where the store can tell,
        before any other is touched. Links inside are removed as links. A link on the way to
        `path`, or `path` itself being one, raises SymlinkInPath with nothing removed; a link that
        is swapped in meanwhile never leads outside.
        What cannot be removed is raised, as PermanentFault, after the rest is gone.
        Raises OutcomeUnknown only when something was found. Durable on return.
        """


class Clock(Protocol):
    """Time that only grows."""

    def now(self) -> float:
        """Seconds since some fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Returns when `seconds` have passed."""


class Random(Protocol):
    """Chance, for jitter and for names nobody else has."""

    def uniform(self, low: float, high: float) -> float:
        """A number from `low` to `high`, evenly spread."""

    def token(self) -> str:
        """A fresh name of at least 64 random bits, in lower-case letters and digits."""


class ParallelMap(Protocol):
    """The builtin `map`, or one that works on several items at a time."""

    def __call__(self, work: Callable[[A], B], items: Iterable[A], /) -> Iterator[B]:
        """Results in the order of `items`."""


class Report(Protocol):
    """Where a verb says what it did, when it has happened."""

    def published(self, entry: Entry) -> None:
        """A publication was made."""

    def already(self, entry: Entry) -> None:
        """The publication was there."""

    def removed(self, path: bytes) -> None:
        """A save was there and is gone."""

    def left(self, path: bytes, link: bytes) -> None:
        """A save stays because `link`, on its way, is a symbolic link."""

    def failed(self, path: bytes, fault: PublishError) -> None:
        """A save or an entry (by its path below the root) could not be removed."""

    def progress(self, done: int, total: int) -> None:
        """Of `total` saves to remove, `done` are seen to; told first when none is."""
