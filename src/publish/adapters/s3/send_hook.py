"""Lets a thread hold back a request that is signed and ready to be sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class SendHook:
    """Calls a function just before this thread sends a put."""

    def __init__(self, client: S3Client) -> None:
        self._functions = threading.local()
        client.meta.events.register_first("before-send.s3.PutObject", self._run)

    @contextmanager
    def set(self, function: Callable[[], None]) -> Iterator[None]:
        """In force for the requests of this thread in this context."""
        self._functions.now = function
        try:
            yield
        finally:
            del self._functions.now

    def _run(self, **_: object) -> None:
        getattr(self._functions, "now", lambda: None)()
