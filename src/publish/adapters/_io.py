"""What several adapters share: reading a path that may not be a regular file, and the causes of an exception."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator

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
