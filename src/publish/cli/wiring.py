"""The composition root: puts adapters behind the domain's ports, and imports them when they are needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from publish.cli.report import Words
from publish.cli.site import Bucket, Job, Site, working_directory
from publish.domain.retry import RetryLimits
from publish.domain.retrying_store import RetryingStore
from publish.domain.root import PosixRoot, S3Root

if TYPE_CHECKING:
    from publish.cli.deadline import Deadline
    from publish.domain.credentials import Credentials, Item, Source

A = TypeVar("A")
B = TypeVar("B")

# So many requests at a time, where a prune has many to send; at least the probe's racing writers.
_WORKERS = 16


def directory(job: Job, root: PosixRoot, enter: Callable[[str], None] = lambda _step: None) -> Site:
    """A root that is a directory. Raises ConfigError unless it is there."""
    from publish.adapters.clock import SystemClock, SystemRandom  # noqa: PLC0415  (start-up)
    from publish.adapters.posix import PosixStore, leads_to  # noqa: PLC0415  (start-up)

    store = PosixStore(root.path)
    is_root = leads_to(root.path)
    # What a directory answers is final: nothing is tried again.
    retrying = RetryingStore(
        store, SystemClock(), SystemRandom(), RetryLimits(0, 0), started=job.started, enter_step=enter
    )
    return Site(
        root,
        retrying,
        Words(job.output, root),
        _one_by_one,
        lambda path: root.locate(path, working_directory(path), is_root),
    )


def sources(job: Job) -> list[Item]:
    """What `-creds` lists. Raises CredentialsError, before any of it is looked at and however little time there is."""
    from publish.domain.credentials import parse_creds  # noqa: PLC0415  (start-up)

    return parse_creds(job.common.creds or "", _base_of_sources())


def bucket(job: Job, root: S3Root, items: Sequence[Item], deadline: Deadline, *, lasting: bool = False) -> Bucket:
    """A root in a bucket. `lasting`: a watch's, which outlives a store's restart and its own credentials.

    Raises CredentialsError.
    """
    from publish.domain.credentials import resolve_credentials  # noqa: PLC0415  (start-up)

    def resolve() -> tuple[str, Credentials]:
        found = resolve_credentials((_source(item, job) for item in items), deadline.left, deadline.at_source)
        # Never taken back: what a store says after a renewal may be about the credentials before.
        job.output.conceal(found[1].secret_access_key, found[1].session_token or "")
        return found

    source, credentials = resolve()
    deadline.at_request("connect")
    _silence_libraries()

    from publish.adapters.ca_bundle import system_ca_bundle  # noqa: PLC0415  (start-up)
    from publish.adapters.clock import SystemClock, SystemRandom  # noqa: PLC0415  (start-up)
    from publish.adapters.s3 import Line, S3Store  # noqa: PLC0415  (start-up)
    from publish.domain.credential_refresh import CredentialRefresher  # noqa: PLC0415  (start-up)
    from publish.domain.probe import probe  # noqa: PLC0415  (start-up)

    timeout = job.common.timeout
    limits = RetryLimits.for_timeout(timeout, long_running=lasting)
    line = Line(job.common.proxy, system_ca_bundle(), timeout, reach=limits.connect_timeout)

    def connect(credentials: Credentials) -> S3Store:
        return S3Store(root, credentials, line)

    store = connect(credentials)
    entropy = SystemRandom()
    retrying = RetryingStore(
        store,
        SystemClock(),
        entropy,
        limits,
        started=job.started,
        refresh=CredentialRefresher(credentials, resolve, connect, job.output.note) if lasting else None,
        on_retry=lambda step, fault, remaining: job.output.note(
            f"store: {step} failed, retrying for up to {remaining:.0f}s: {fault}"
        ),
        enter_step=deadline.at_request,
    )
    site = Site(
        root, retrying, Words(job.output, root), _at_once, lambda path: root.locate(path, b"/", lambda _: False)
    )
    return Bucket(site, source, lambda: probe(retrying.retry, store, entropy, _at_once))


def _silence_libraries() -> None:
    """Keeps what libraries log off stderr, where it would have no `publish: ` before it and perhaps a token in it."""
    import logging  # noqa: PLC0415  (start-up)

    logging.getLogger().addHandler(logging.NullHandler())


def _source(item: Item, job: Job) -> Source:
    """The source that an item of `-creds` names, built when its turn has come."""
    from publish.adapters import secret_files as files  # noqa: PLC0415  (start-up)
    from publish.domain.credentials import FileItem, SecretItem  # noqa: PLC0415  (start-up)

    if isinstance(item, SecretItem):
        return files.SecretDirectory(item.name, item.path)
    if isinstance(item, FileItem):
        return files.PrivateDirectory(item.name, item.path)

    _silence_libraries()
    from publish.adapters.ca_bundle import system_ca_bundle  # noqa: PLC0415  (start-up)
    from publish.adapters.vault import VaultSource  # noqa: PLC0415  (start-up)

    return VaultSource(
        item.name,
        item.location,
        trust=system_ca_bundle(),
        environment=job.env,
        read_directory=files.read_private_directory,
        read_file=files.read_secret_file,
    )


def _base_of_sources() -> bytes:
    """What relative sources are relative to; where that is gone, nothing is found in it (C7)."""
    try:
        return os.getcwdb()
    except OSError:
        return b"/proc/self/cwd"


def _one_by_one(work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    return map(work, items)


def _at_once(work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (start-up)

    with ThreadPoolExecutor(_WORKERS) as pool:
        yield from pool.map(work, items)
