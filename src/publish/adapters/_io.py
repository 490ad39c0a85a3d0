"""Plumbing that several adapters share: files that may not be files, wrapped exceptions, calls that may hang."""

from __future__ import annotations

import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

# O_NONBLOCK: a FIFO without a writer opens at once instead of blocking (open(2)); a regular file ignores it.
READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class NotRegularFileError(ValueError):
    """The path is a directory, a FIFO, a socket or a device."""


class FileTooLargeError(ValueError):
    """The file has more bytes than the caller accepts."""


def read_regular_file(path: bytes | str, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes. Never blocks on a FIFO.

    Raises OSError, NotRegularFileError or FileTooLargeError.
    """
    descriptor = os.open(path, READ_FLAGS)
    try:
        return read_descriptor(descriptor, limit)
    finally:
        os.close(descriptor)


def read_descriptor(descriptor: int, limit: int) -> bytes:
    """As `read_regular_file`, of a descriptor opened with READ_FLAGS, from its current position."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise NotRegularFileError("not a regular file")
    content = bytearray()
    while part := os.read(descriptor, limit + 1 - len(content)):
        content += part
    if len(content) > limit:
        raise FileTooLargeError(f"larger than {_size(limit)}")
    return bytes(content)


def _size(limit: int) -> str:
    return f"{limit // 2**20} MiB" if limit >= 2**20 else f"{limit // 2**10} KiB"


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and every exception it wraps, outermost first.

    urllib3 wraps as `reason` or as an argument, requests as an argument, botocore as a keyword.
    """
    seen: set[int] = set()
    waiting: deque[object] = deque([error])
    while waiting:
        cause = waiting.popleft()
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        keywords = getattr(cause, "kwargs", {})
        waiting += [keywords.get("error"), getattr(cause, "reason", None), *cause.args]
        waiting += [cause.__cause__, cause.__context__]


def run_with_limit(work: Callable[[], T], seconds: float) -> T:
    """What `work` returns or raises. Raises TimeoutError after `seconds`; `work` then goes on in its thread.

    A socket's timeout is per read, so it never ends a slow drip, and a name lookup has none.
    """
    values: list[T] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            values.append(work())
        except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
            errors.append(error)
        ended.set()

    threading.Thread(target=run, name="request", daemon=True).start()
    if not ended.wait(seconds):
        raise TimeoutError
    for error in errors:
        raise error
    return values[0]
