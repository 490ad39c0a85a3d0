"""The composition root: puts adapters behind the domain's ports, and imports them when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from publish.cli.report import Words
from publish.cli.site import Job, Site, working_directory
from publish.domain.errors import Misconfigured
from publish.domain.requests import Requests
from publish.domain.retry import Patience
from publish.domain.root import PosixRoot, S3Root

if TYPE_CHECKING:
    from publish.cli.deadline import Deadline  # start-up: brings threads

A = TypeVar("A")
B = TypeVar("B")


def directory(job: Job, root: PosixRoot, enter: Callable[[str], None] = lambda _step: None) -> Site:
    """A root that is a directory. Raises Misconfigured unless it is there."""
    from publish.adapters.clock import SystemClock, SystemEntropy  # noqa: PLC0415  (start-up)
    from publish.adapters.posix import PosixStore, leads_to  # noqa: PLC0415  (start-up)

    store = PosixStore(root.path)
    is_root = leads_to(root.path)
    # What a directory answers is final: nothing is tried again.
    ask = Requests(store, SystemClock(), SystemEntropy(), Patience(0, 0), started=job.started, enter=enter)
    return Site(
        root,
        ask,
        Words(job.output, root),
        _one_by_one,
        lambda path: root.locate(path, working_directory(path), is_root),
    )


def bucket(job: Job, root: S3Root, deadline: Deadline, *, lasting: bool = False) -> Site:
    """A root in a bucket, its credentials resolved. `lasting`: a watch, which renews them."""
    raise Misconfigured("S3 roots are not built yet")


def _one_by_one(work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    return map(work, items)
