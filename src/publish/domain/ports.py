"""What the domain needs from outside. These docstrings are the contract; adapters only say how they keep it.

Paths are bytes relative to the root (b"" is the root), names are bytes as they appear in a
listing, times are seconds. Each call of a Store is one attempt: it neither waits nor retries,
and the class of the `errors.StoreFault` that it raises says whether anything was written.
`retrying_store.RetryingStore` is a Store that does retry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from publish.domain.errors import StoreFault
from publish.domain.light_typing import NamedTuple, Protocol, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


class Namespace(Enum):
    """A folder of entries below the root; its value is the folder's path."""

    PUB = b"pub"
    PRUNE = b".publish/prune"
    EPOCH = b".publish/epoch"
    BEGIN = b".publish/begin"


class Page(NamedTuple):
    """Part of a listing. `next_token` fetches the next part; None: this is the last one."""

    names: Sequence[bytes]
    next_token: str | None


class DatedName(NamedTuple):
    """A name in a namespace and when it was created."""

    name: bytes
    created: float
    """In seconds since the epoch of Unix, by the clock of the store."""


class DatedPage(NamedTuple):
    """Part of a listing with times, as `Page` is one of names."""

    names: Sequence[DatedName]
    next_token: str | None


DANGLING = -1
"""The size with which a symbolic link that leads nowhere is listed."""


class SavedFile(NamedTuple):
    """A file of a save."""

    path: bytes
    """Relative to the save's folder."""

    size: int
    """In bytes, or DANGLING."""

    version: str
    """Changes when the file is written anew."""


class FilesPage(NamedTuple):
    """Part of a listing of files, as `Page` is one of names."""

    files: Sequence[SavedFile]
    next_token: str | None


class Removal(NamedTuple):
    """What one call of `remove_tree` did: whether it found anything, and whether it must be called again."""

    found: bool
    incomplete: bool


class Store(Protocol):
    """A checkpoint root."""

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        """The names in a namespace, in no order, those of other programs included.

        A namespace that does not exist has no names. A name that exists from before the first
        page is fetched until after the last is on a page, and may be there twice (s3.17).
        Raises FormatError if the namespace is not a folder or a member is not a regular file,
        and ConfigError (PermanentFault if only the store can tell) if the root does not exist.
        """

    def list_dated(self, namespace: Namespace, token: str | None) -> DatedPage:
        """As `list_entries`, with the times."""

    def check_name_length(self, name: bytes) -> None:
        """Raises ConfigError with the limit if an entry of this name is too long. Sends no request."""

    def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
        """Creates `name` with its content exclusively: of any number of racers exactly one returns.

        No reader ever sees less than the whole content.

        Durable on return, and also on AlreadyExists. Creates the namespace if necessary.
        Raises AlreadyExists, Conflict, OutcomeUnknown (perhaps written) or what prevented it.
        """

    def read_record(self, namespace: Namespace, name: bytes) -> bytes | None:
        """The first 64 KiB of what `name` was created with; None if it does not exist.

        Raises FormatError if it is not a regular file.
        """

    def sync_entries(self, namespace: Namespace, names: Sequence[bytes]) -> None:
        """Makes these entries durable, whichever process created them; one that does not exist is not a fault."""

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """Removes names (at most 1,000) and returns those that could not be removed, each with the reason.

        A name that does not exist is not a fault. Idempotent. The removals are durable on return,
        and so are earlier ones by other processes, even if `names` is empty.
        Raises if the request as a whole failed (some names may be gone).
        """

    def save_exists(self, path: bytes) -> bool:
        """Whether a save can be published: a folder or a regular file."""

    def list_directories(self, path: bytes, token: str | None) -> Page:
        """Names of the folders directly in `path`; symbolic links are not listed.

        A `path` that does not exist has none. Raises ConfigError if the root does not exist or
        `path` is not a folder.
        """

    def list_files_in(self, path: bytes, token: str | None) -> Page:
        """Names of the regular files directly in `path`; symbolic links are not listed.

        Otherwise as `list_directories`.
        """

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        """Every file of the save `path`, in no order: all regular files below the folder.

        Symbolic links are followed, each folder behind them once; one that leads nowhere is listed
        with the size DANGLING. A `path` that does not exist, or is a file, has none.
        """

    def exists(self, path: bytes) -> bool:
        """Whether a path exists: a file, a folder, or anything else that the store can hold."""

    def size(self, path: bytes) -> int | None:
        """The size of a regular file in bytes; None if there is no such file."""

    def version(self, path: bytes) -> str | None:
        """Changes when a regular file is written anew; None if there is no such file."""

    def read(self, path: bytes, limit: int) -> bytes | None:
        """The first `limit` bytes of a regular file; None if nothing exists there.

        Raises FormatError for a file that is not regular or not readable.
        """

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        """`length` bytes of a file, symbolic links followed; fewer where the file ends before.

        A negative `start` counts from the end (b"" and the whole of a shorter file included).
        Raises FormatError for a file that is not there, not regular or not readable.
        """

    def sync_save(self, path: bytes) -> None:
        """Makes a save's own data durable: its files, its folders and the folders up to the root.

        What vanishes meanwhile is not a fault. Raises NotDurable that names what could not be
        synced, PermanentFault for what could not be opened. A store that acknowledges only durable writes does nothing.
        """

    def real_path(self, path: bytes) -> bytes | None:
        """Where `path` leads below the root, symbolic links resolved; None: outside the root, or nowhere."""

    def owner_is_trusted(self, path: bytes, reference: bytes) -> bool:
        """Whether `path` belongs to the user running, to root or to the owner of `reference`.

        Also true if it does not exist, and in a store whose files have no owners.
        """

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        """Removes a folder with everything in it, or a file, as far as one call goes. Idempotent.

        The files `first` directly in the folder are gone, durably if the store can tell,
        before any other is touched. Links inside the folder are removed as links. A link on the
        way to `path`, or `path` itself being a link, raises SymlinkInPath with nothing removed;
        even a link that is swapped in concurrently never leads outside the root.
        Removes what it can, then raises PermanentFault if something is left.
        Raises OutcomeUnknown only if something was found. Durable on return.
        """


class Clock(Protocol):
    """Monotonic time."""

    def now(self) -> float:
        """Seconds since some fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Returns after `seconds`."""


class Random(Protocol):
    """Randomness for jitter and for unique names."""

    def uniform(self, low: float, high: float) -> float:
        """A uniformly distributed number from `low` to `high`."""

    def token(self) -> str:
        """A fresh name of at least 64 random bits, in lower-case letters and digits."""


class ParallelMap(Protocol):
    """The builtin `map`, or one that processes several items at a time."""

    def __call__(self, work: Callable[[In], Out], items: Iterable[In], /) -> Iterator[Out]:
        """Results in the order of `items`."""
