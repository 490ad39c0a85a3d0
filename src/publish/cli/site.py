"""A checkpoint root that a verb can work on: what the wiring hands to the verbs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from publish.cli.options import Common
from publish.cli.output import Output
from publish.cli.report import Words
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError
from publish.domain.ports import ParallelMap
from publish.domain.retrying_store import RetryingStore
from publish.domain.root import Root


class Job(NamedTuple):
    """What was asked for, on which root, since when: a moment of `time.monotonic`, in seconds."""

    root: Root
    common: Common
    env: Mapping[str, str]
    output: Output
    started: float


class Site(NamedTuple):
    """A root, open."""

    root: Root
    store: RetryingStore
    report: Words
    parallel: ParallelMap
    locate: Callable[[bytes], bytes]
    """The path below the root of a save or a folder of saves, as the user wrote it. Raises ConfigError."""


class Bucket(NamedTuple):
    """A root in a bucket, open with the credentials of `source`. `probe` raises what is wrong with the store."""

    site: Site
    source: str
    probe: Callable[[], None]


class Done(NamedTuple):
    """What a verb came to: its answer, without the newline, and whether all that it had to do is done."""

    answer: bytes | None = None
    complete: bool = True


def is_same_place(one: bytes, other: bytes) -> bool:
    """Whether two paths lead to the same directory."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def working_directory(path: bytes) -> bytes:
    """What `path` is relative to. Raises ConfigError where that cannot be told and matters."""
    if path.startswith((b"/", b"s3://")):
        return b"/"
    try:
        return os.getcwdb()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise ConfigError(f"a relative path and the working directory is gone ({why}): {to_text(path)}") from error
