"""A store that fails by a schedule, one fault per call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import TypeVar

from publish.domain.errors import AlreadyExists, Conflict, CredentialsRejected, NotApplied, OutcomeUnknown, StoreFault
from publish.domain.ports import DatedPage, FilesPage, Namespace, Page, Removal, Store

T = TypeVar("T")


class Crash(BaseException):
    """The process dies here. Not an Exception, so that no handler of the program catches it."""


class Fault(Enum):
    NONE = auto()
    LOST_REQUEST = auto()
    LOST_REPLY = auto()
    CONFLICT = auto()
    RIVAL_WRITES = auto()
    STALE_LIST = auto()
    EXPIRED = auto()
    CRASH = auto()
    CRASH_AFTER = auto()


class FaultyStore:
    """Adds faults to `inner`; works once the schedule is used up.

    A fault that a call cannot have, such as a conflict in a listing, is skipped.
    """

    def __init__(self, inner: Store, schedule: Iterable[Fault]) -> None:
        self._inner = inner
        self._schedule = iter(schedule)
        self._last_pages: dict[tuple[object, ...], Page] = {}
        self.sends = 0

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        return self._listing((namespace, token), lambda: self._inner.list_entries(namespace, token))

    def list_directories(self, path: bytes, token: str | None) -> Page:
        return self._listing((path, token), lambda: self._inner.list_directories(path, token))

    def list_files_in(self, path: bytes, token: str | None) -> Page:
        return self._listing((path, b"files", token), lambda: self._inner.list_files_in(path, token))

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        return self._do(self._next(), lambda: self._inner.list_files(path, token))

    def list_dated(self, namespace: Namespace, token: str | None) -> DatedPage:
        return self._do(self._next(), lambda: self._inner.list_dated(namespace, token))

    def check_name_length(self, name: bytes) -> None:
        self._inner.check_name_length(name)

    def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
        fault = self._next()
        if fault is Fault.CONFLICT:
            raise Conflict("another put is in flight")
        if fault is Fault.RIVAL_WRITES:
            with suppress(AlreadyExists):
                self._inner.create(namespace, name, content)
        self._do(fault, lambda: self._inner.create(namespace, name, content), writes=True)

    def read_record(self, namespace: Namespace, name: bytes) -> bytes | None:
        return self._do(self._next(), lambda: self._inner.read_record(namespace, name))

    def sync_entries(self, namespace: Namespace, names: Sequence[bytes]) -> None:
        self._do(self._next(), lambda: self._inner.sync_entries(namespace, names))

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        return self._do(self._next(), lambda: self._inner.remove_entries(namespace, names), writes=True)

    def save_exists(self, path: bytes) -> bool:
        return self._do(self._next(), lambda: self._inner.save_exists(path))

    def exists(self, path: bytes) -> bool:
        return self._do(self._next(), lambda: self._inner.exists(path))

    def size(self, path: bytes) -> int | None:
        return self._do(self._next(), lambda: self._inner.size(path))

    def version(self, path: bytes) -> str | None:
        return self._do(self._next(), lambda: self._inner.version(path))

    def read(self, path: bytes, limit: int) -> bytes | None:
        return self._do(self._next(), lambda: self._inner.read(path, limit))

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        return self._do(self._next(), lambda: self._inner.read_range(path, start, length))

    def sync_save(self, path: bytes) -> None:
        self._do(self._next(), lambda: self._inner.sync_save(path))

    def real_path(self, path: bytes) -> bytes | None:
        return self._do(self._next(), lambda: self._inner.real_path(path))

    def is_link(self, path: bytes) -> bool:
        return self._do(self._next(), lambda: self._inner.is_link(path))

    def owner_is_trusted(self, path: bytes, reference: bytes) -> bool:
        return self._do(self._next(), lambda: self._inner.owner_is_trusted(path, reference))

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        found = self._inner.save_exists(path)
        return self._do(self._next(), lambda: self._inner.remove_tree(path, first), writes=found)

    def _next(self) -> Fault:
        self.sends += 1
        return next(self._schedule, Fault.NONE)

    def _listing(self, key: tuple[object, ...], request: Callable[[], Page]) -> Page:
        fault = self._next()
        if fault is Fault.STALE_LIST and key in self._last_pages:
            return self._last_pages[key]
        page = self._do(fault, request)
        self._last_pages[key] = page
        return page

    def _do(self, fault: Fault, request: Callable[[], T], *, writes: bool = False) -> T:
        if fault is Fault.CRASH:
            raise Crash
        if fault is Fault.LOST_REQUEST:
            raise NotApplied("request lost")
        if fault is Fault.EXPIRED:
            raise CredentialsRejected("rejected", "ExpiredToken", refreshable=True)
        result = request()
        if fault is Fault.CRASH_AFTER:
            raise Crash
        if fault is Fault.LOST_REPLY:
            raise (OutcomeUnknown if writes else NotApplied)("reply lost")
        return result
