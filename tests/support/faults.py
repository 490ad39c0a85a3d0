"""A store that goes wrong by a schedule, one fault a call, as a network does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import TypeVar

from publish.domain.errors import AlreadyThere, Conflict, OutcomeUnknown, Refused, StoreFault, Unavailable
from publish.domain.ports import Area, Page, Removal, Store

T = TypeVar("T")


class Crash(BaseException):
    """The process is gone at this point. No handler of the program may stop it."""


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
    """`inner` behind faults; when the schedule is used up, it works.

    A fault that a call cannot show (a conflict of a listing) counts as none.
    """

    def __init__(self, inner: Store, schedule: Iterable[Fault]) -> None:
        self._inner = inner
        self._schedule = iter(schedule)
        self._last_pages: dict[tuple[object, str | None], Page] = {}
        self.sends = 0

    def names(self, area: Area, after: str | None) -> Page:
        return self._listing((area, after), lambda: self._inner.names(area, after))

    def folders(self, path: bytes, after: str | None) -> Page:
        return self._listing((path, after), lambda: self._inner.folders(path, after))

    def refuse_oversized(self, name: bytes) -> None:
        self._inner.refuse_oversized(name)

    def create(self, area: Area, name: bytes) -> None:
        fault = self._next()
        if fault is Fault.CONFLICT:
            raise Conflict("another put is in flight")
        if fault is Fault.RIVAL_WRITES:
            with suppress(AlreadyThere):
                self._inner.create(area, name)
        self._do(fault, lambda: self._inner.create(area, name), writes=True)

    def remove(self, area: Area, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        return self._do(self._next(), lambda: self._inner.remove(area, names), writes=True)

    def has_save(self, path: bytes) -> bool:
        return self._do(self._next(), lambda: self._inner.has_save(path))

    def is_there(self, path: bytes) -> bool:
        return self._do(self._next(), lambda: self._inner.is_there(path))

    def size(self, path: bytes) -> int | None:
        return self._do(self._next(), lambda: self._inner.size(path))

    def read(self, path: bytes) -> Iterator[bytes] | None:
        return self._do(self._next(), lambda: self._inner.read(path))

    def remove_save(self, path: bytes, first: Sequence[bytes]) -> Removal:
        found = self._inner.has_save(path)
        return self._do(self._next(), lambda: self._inner.remove_save(path, first), writes=found)

    def _next(self) -> Fault:
        self.sends += 1
        return next(self._schedule, Fault.NONE)

    def _listing(self, key: tuple[object, str | None], request: Callable[[], Page]) -> Page:
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
            raise Unavailable("lost on the way")
        if fault is Fault.EXPIRED:
            raise Refused("refused", "ExpiredToken")
        result = request()
        if fault is Fault.CRASH_AFTER:
            raise Crash
        if fault is Fault.LOST_REPLY:
            raise (OutcomeUnknown if writes else Unavailable)("the reply is lost")
        return result
