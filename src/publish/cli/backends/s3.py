"""A checkpoint root that is a prefix in a bucket, and the sources of its credentials."""

from __future__ import annotations

import os

from publish.cli.backends.backend import Backend, OpenRoot, Prepared, log_retries
from publish.cli.deadline import Deadline
from publish.cli.reporter import Reporter
from publish.cli.verbs.common import CREDS, ONLY_S3, PROXY, TIMEOUT
from publish.domain.light_typing import TypeVar
from publish.domain.retry import RetryLimits
from publish.domain.retrying_store import RetryingStore
from publish.domain.root import is_s3_url, parse_s3_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from publish.cli.output import Output
    from publish.cli.verbs.common import Invocation
    from publish.domain.credentials import Credentials, Source, SourceSpec
    from publish.domain.errors import CredentialsRejected
    from publish.domain.ports import Store
    from publish.domain.retrying_store import Refresh
    from publish.domain.root import S3Root
    from publish.domain.server_url import Origin

In = TypeVar("In")
Out = TypeVar("Out")

# While a prune removes saves.
_REQUESTS_IN_FLIGHT = 16


def _prepare(invocation: Invocation, text: bytes, long_running: bool) -> Prepared:  # noqa: FBT001  (as Backend.prepare)
    from publish.domain.credentials import parse_creds

    root = parse_s3_url(text)
    # Before the deadline: however little time there is, a wrong list is reported as such.
    items = parse_creds(invocation.line[CREDS], _sources_directory())
    deadline = Deadline(invocation.started, invocation.line[TIMEOUT])
    deadline.enter_source("before the first source")
    return Prepared(deadline, lambda: _open(invocation, root, items, deadline, long_running=long_running))


def _open(
    invocation: Invocation, root: S3Root, items: Iterable[SourceSpec], deadline: Deadline, *, long_running: bool
) -> OpenRoot:
    from publish.adapters.process_memory import DumpsForbidden
    from publish.domain.credentials import VaultSpec, resolve_credentials
    from publish.domain.server_url import parse_origin

    dumps = DumpsForbidden()
    line, output = invocation.line, invocation.output

    def resolve() -> tuple[str, Credentials]:
        found = resolve_credentials(
            (_source(item, invocation) for item in items), deadline.remaining, deadline.enter_source
        )
        # Never withdrawn: after a refresh the store may still echo the previous credentials.
        output.redact(found[1].secret_access_key, found[1].session_token or "")
        return found

    for item in items:
        if isinstance(item, VaultSpec):
            _log_plaintext(output, item.location.server, "read the credentials, or replace them")
    source, credentials = resolve()
    if credentials.endpoint is not None:
        risk = "change what is listed, and so what prune deletes below the prefix"
        _log_plaintext(output, parse_origin(credentials.endpoint), risk)
    deadline.enter_request("connect")
    silence_libraries()

    from publish.adapters.ca_bundle import system_ca_bundle
    from publish.adapters.clock import SystemClock, SystemRandom
    from publish.adapters.s3 import ConnectionSettings, S3Store
    from publish.cli.race import race
    from publish.domain.credential_refresh import CredentialRefresher
    from publish.domain.probe import probe

    limits = RetryLimits.for_timeout(line[TIMEOUT], long_running=long_running)
    settings = ConnectionSettings(line.get(PROXY), system_ca_bundle(), line[TIMEOUT], limits.connect_timeout)

    def connect(credentials: Credentials) -> S3Store:
        return S3Store(root, credentials, settings)

    store = connect(credentials)
    random = SystemRandom()
    refresh = _one_at_a_time(CredentialRefresher(credentials, resolve, connect, output.log))
    retrying = RetryingStore(
        store,
        SystemClock(),
        random,
        limits,
        started=invocation.started,
        refresh=refresh if long_running else None,
        on_retry=log_retries(invocation, long_running=long_running),
        enter_step=deadline.enter_request,
    )

    def probe_store() -> bytes:
        probe(retrying.retry, store, random, race)
        return b"probed %s with the credentials of %s" % (root.render(b""), source.encode("utf-8", "surrogateescape"))

    return OpenRoot(
        root,
        retrying,
        Reporter(output, root, invocation.verb.name),
        _in_parallel,
        root.locate,
        probe_store,
        dumps,
    )


def _log_plaintext(output: Output, server: Origin, risk: str) -> None:
    """Warns of a server that is reached through a network without TLS, before anything is sent to it."""
    from publish.domain.server_url import plaintext_risk

    note = plaintext_risk(server, risk)
    if note is not None:
        output.log(note)


def silence_libraries() -> None:
    """Keeps the libraries' log records off stderr: they lack the prefix and may hold a token."""
    import logging

    logging.getLogger().addHandler(logging.NullHandler())


def _source(item: SourceSpec, invocation: Invocation) -> Source:
    """The source that an item of `-creds` names, built when it is about to be asked."""
    from publish.adapters.secret_files import directory_source
    from publish.domain.credentials import DirectorySpec

    if isinstance(item, DirectorySpec):
        return directory_source(item)

    silence_libraries()
    from publish.adapters.ca_bundle import system_ca_bundle
    from publish.adapters.vault import VaultSource

    return VaultSource(
        item.name,
        item.location,
        ca_bundle=system_ca_bundle(),
        environment=invocation.env,
        timeout=invocation.line[TIMEOUT],
    )


def _sources_directory() -> bytes:
    """The directory that sources are relative to; nothing is found in one that was removed (creds.7)."""
    try:
        return os.getcwdb()
    except OSError:
        return b"/proc/self/cwd"


def _one_at_a_time(refresh: Refresh) -> Refresh:
    """Requests are sent from several threads, and all of them may be rejected at once."""
    from threading import Lock

    lock = Lock()

    def locked(rejection: CredentialsRejected, rejected: Store) -> Store:
        with lock:
            return refresh(rejection, rejected)

    return locked


def _in_parallel(work: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_REQUESTS_IN_FLIGHT) as pool:
        yield from pool.map(work, items)


BACKEND = Backend("an S3 root", ONLY_S3, is_s3_url, _prepare, fault_prefix="store: ")
