"""A store that sends each request until it is answered, refused for good, or out of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from publish.domain.entry import to_text
from publish.domain.errors import AlreadyExists, Conflict, CredentialsRejected, OutcomeUnknown, StoreFault, TimedOut
from publish.domain.light_typing import TypeVar
from publish.domain.ports import Clock, DatedPage, FilesPage, Namespace, Page, Random, Removal, Store
from publish.domain.retry import Attempts, RetryLimits, next_wait

T = TypeVar("T")

Refresh = Callable[[CredentialsRejected, Store], Store]
OnRetry = Callable[[str, StoreFault, float], None]
EnterStep = Callable[[str], None]


class RetryingStore:
    """A Store around another one. Every method raises TimedOut, or the last fault that `store` raised."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: Random,
        limits: RetryLimits,
        *,
        started: float,
        refresh: Refresh | None = None,
        on_retry: OnRetry = lambda _step, _fault, _remaining: None,
        enter_step: EnterStep = lambda _step: None,
    ) -> None:
        """`started`: the clock's time from which `limits.total` counts.

        `refresh(rejection, rejected)` returns the store with fresh credentials, or raises; `rejected` is the one that
        the request was sent to. None: a rejection is final.
        `on_retry(step, fault, remaining)` is called for the first of several faults in a row;
        `remaining`: for how many more seconds requests are retried.
        `enter_step(step)` is called before each attempt.
        """
        self._store = store
        self._clock = clock
        self._random = random
        self._limits = limits
        self._started = started
        self._refresh = refresh
        self._on_retry = on_retry
        self._enter_step = enter_step
        self._failing = False

    def restart(self, started: float) -> None:
        """Counts `limits.total` from this time of the clock on: each scan of a watch has its own."""
        self._started = started

    def retry(self, step: str, request: Callable[[], T]) -> T:
        """What `request` returns in the end; it may be called several times. `step` names it in errors."""
        attempts = Attempts()
        refreshed = False
        while True:
            self._enter_step(step)
            sent = self._clock.now()
            store = self._store
            try:
                answer = request()
            except CredentialsRejected as rejection:
                if refreshed or self._refresh is None or not rejection.refreshable:
                    raise
                self._store = self._refresh(rejection, store)
                refreshed = True
            except StoreFault as fault:
                attempts = attempts.record(fault, sent)
                self._wait(step, fault, attempts)
            else:
                self._failing = False
                return answer

    def _wait(self, step: str, fault: StoreFault, attempts: Attempts) -> None:
        now = self._clock.now()
        bounds = next_wait(fault, attempts, now, self._limits)
        if bounds is None:
            self._failing = False
            raise fault
        wait = self._random.uniform(*bounds)
        remaining = self._started + self._limits.total - now
        if wait >= remaining:
            limit = f"{self._limits.set_by}{self._limits.total:g}s"
            raise TimedOut(f"{step}: out of time ({limit}): {fault}") from fault
        # A conflict is settled within a second and needs no report.
        if not self._failing and not isinstance(fault, Conflict):
            self._failing = True
            self._on_retry(step, fault, self._until_given_up(attempts, now, remaining))
        self._clock.sleep(wait)

    def _until_given_up(self, attempts: Attempts, now: float, remaining: float) -> float:
        if attempts.unreachable_since is None:
            return remaining
        return min(remaining, attempts.unreachable_since + self._limits.unreachable - now)

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        """`Store.list_entries`, retried."""
        step = f"list {to_text(namespace.value)}/"
        return self.retry(step, lambda: self._store.list_entries(namespace, token))

    def list_dated(self, namespace: Namespace, token: str | None) -> DatedPage:
        """`Store.list_dated`, retried."""
        step = f"list {to_text(namespace.value)}/"
        return self.retry(step, lambda: self._store.list_dated(namespace, token))

    def check_name_length(self, name: bytes) -> None:
        """`Store.check_name_length`."""
        self._store.check_name_length(name)

    def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
        """`Store.create`, retried. AlreadyExists after a lost reply is marked as perhaps this call's own doing."""
        outcome_unknown = False

        def create() -> None:
            nonlocal outcome_unknown
            try:
                self._store.create(namespace, name, content)
            except OutcomeUnknown:
                outcome_unknown = True
                raise
            except AlreadyExists as taken:
                raise AlreadyExists(str(taken), perhaps_ours=outcome_unknown) from taken

        self.retry(f"create {to_text(namespace.value)}/{to_text(name)}", create)

    def read_record(self, namespace: Namespace, name: bytes) -> bytes | None:
        """`Store.read_record`, retried."""
        step = f"read {to_text(namespace.value)}/{to_text(name)}"
        return self.retry(step, lambda: self._store.read_record(namespace, name))

    def sync_entries(self, namespace: Namespace, names: Sequence[bytes]) -> None:
        """`Store.sync_entries`, retried."""
        self.retry(f"sync {to_text(namespace.value)}/", lambda: self._store.sync_entries(namespace, names))

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """`Store.remove_entries`, retried."""
        step = f"remove {len(names)} from {to_text(namespace.value)}/"
        return self.retry(step, lambda: self._store.remove_entries(namespace, names))

    def save_exists(self, path: bytes) -> bool:
        """`Store.save_exists`, retried."""
        return self.retry(f"look for {to_text(path)}", lambda: self._store.save_exists(path))

    def list_directories(self, path: bytes, token: str | None) -> Page:
        """`Store.list_directories`, retried."""
        step = f"list {to_text(path)}/" if path else "list the root"
        return self.retry(step, lambda: self._store.list_directories(path, token))

    def list_files_in(self, path: bytes, token: str | None) -> Page:
        """`Store.list_files_in`, retried."""
        step = f"list {to_text(path)}/" if path else "list the root"
        return self.retry(step, lambda: self._store.list_files_in(path, token))

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        """`Store.list_files`, retried."""
        return self.retry(f"list {to_text(path)}/", lambda: self._store.list_files(path, token))

    def exists(self, path: bytes) -> bool:
        """`Store.exists`, retried."""
        return self.retry(f"look for {to_text(path)}", lambda: self._store.exists(path))

    def size(self, path: bytes) -> int | None:
        """`Store.size`, retried."""
        return self.retry(f"look for {to_text(path)}", lambda: self._store.size(path))

    def version(self, path: bytes) -> str | None:
        """`Store.version`, retried."""
        return self.retry(f"look for {to_text(path)}", lambda: self._store.version(path))

    def read(self, path: bytes, limit: int) -> bytes | None:
        """`Store.read`, retried from the start."""
        return self.retry(f"read {to_text(path)}", lambda: self._store.read(path, limit))

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        """`Store.read_range`, retried from the start."""
        return self.retry(f"read {to_text(path)}", lambda: self._store.read_range(path, start, length))

    def sync_save(self, path: bytes) -> None:
        """`Store.sync_save`, retried from the start."""
        self.retry(f"sync {to_text(path)}", lambda: self._store.sync_save(path))

    def real_path(self, path: bytes) -> bytes | None:
        """`Store.real_path`, retried."""
        return self.retry(f"look for {to_text(path)}", lambda: self._store.real_path(path))

    def is_link(self, path: bytes) -> bool:
        """`Store.is_link`, retried."""
        return self.retry(f"look for {to_text(path)}", lambda: self._store.is_link(path))

    def owner_is_trusted(self, path: bytes, reference: bytes) -> bool:
        """`Store.owner_is_trusted`, retried."""
        return self.retry(f"look for {to_text(path)}", lambda: self._store.owner_is_trusted(path, reference))

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        """`Store.remove_tree`, retried; `found` is true if any attempt may have removed something."""
        found = False

        def remove() -> Removal:
            nonlocal found
            try:
                return self._store.remove_tree(path, first)
            except OutcomeUnknown:
                found = True
                raise

        removal = self.retry(f"remove {to_text(path)}", remove)
        return removal._replace(found=found or removal.found)
