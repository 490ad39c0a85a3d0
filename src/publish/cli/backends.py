"""The kinds of checkpoint root, and how each is opened: the composition root, the one module that imports adapters.

A kind is a row of `BACKENDS`. Adapters are imported when a root of their kind is opened, and the
clients of S3 and Vault take far longer to import than a directory takes to be resolved.
"""

from __future__ import annotations

import os
from time import monotonic

from publish.cli.deadline import Deadline
from publish.cli.reporter import Reporter
from publish.cli.verbs.common import CHECKPOINT, CREDS, ONLY_DIRECTORIES, ONLY_S3, PROXY, TIMEOUT
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError, UsageError
from publish.domain.light_typing import TypeVar
from publish.domain.retry import RetryLimits
from publish.domain.retrying_store import RetryingStore
from publish.domain.root import is_directory_path, is_s3_url, parse_directory, parse_s3_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from publish.adapters.process_memory import DumpsForbidden
    from publish.cli.output import Output
    from publish.cli.verbs.common import Invocation
    from publish.domain.credentials import Credentials, Source, SourceSpec
    from publish.domain.errors import CredentialsRejected, StoreFault
    from publish.domain.ports import ParallelMap, Store
    from publish.domain.retrying_store import OnRetry, Refresh
    from publish.domain.root import PosixRoot, Root, S3Root


In = TypeVar("In")
Out = TypeVar("Out")
T = TypeVar("T")

# Requests in flight while a prune removes saves.
_WORKERS = 16
# For so long a verb on a directory repeats what failed with a stale file handle (nfs.6).
STALE_RETRY_SECONDS = 10.0


class OpenRoot:
    """A checkpoint root that a verb can work on."""

    def __init__(
        self,
        root: Root,
        store: RetryingStore,
        reporter: Reporter,
        parallel: ParallelMap,
        locate: Callable[[bytes], bytes],
        source: str = "",
        probe: Callable[[], None] | None = None,
        dumps: DumpsForbidden | None = None,
    ) -> None:
        """`locate` gives the path below the root of a save as the user wrote it, and raises ConfigError.

        `source` names the credential source that answered. `probe` raises what is wrong with the store.
        `dumps`: what a child must not inherit.
        """
        self.root = root
        self.store = store
        self.reporter = reporter
        self.parallel = parallel
        self.locate = locate
        self.source = source
        self._probe = probe
        self._dumps = dumps

    def start(self, start: Callable[[], T]) -> T:
        """What `start` returns, which starts a child with the limits that publish was started with."""
        if self._dumps is None:
            return start()
        with self._dumps.lifted():
            return start()

    def probe(self) -> bytes:
        """Probes the store and describes what was probed. Raises PublishError."""
        if self._probe is None:
            raise UsageError("this kind of root cannot be probed")
        self._probe()
        return b"probed %s with the credentials of %s" % (
            self.root.render(b""),
            self.source.encode("utf-8", "surrogateescape"),
        )


class Prepared:
    """A root whose text and credential list are right, but to which no request was sent yet."""

    def __init__(self, deadline: Deadline, open_root: Callable[[], OpenRoot]) -> None:
        """`open_root` raises PublishError; it may only be called under the deadline."""
        self.deadline = deadline
        self.open = open_root


class Backend:
    """A kind of checkpoint root."""

    def __init__(
        self,
        name: str,
        plural: str,
        claims: Callable[[bytes], bool],
        prepare: Callable[[Invocation, bytes, bool], Prepared],
        fault_prefix: str = "",
    ) -> None:
        """`name` and `plural` are for messages: "an S3 root", and what `Flag.only_for` says.

        `claims` tells whether a text names a root of this kind. `prepare(invocation, text,
        long_running)` raises ConfigError and CredentialsError. `fault_prefix` goes before a
        fault of the store.
        """
        self.name = name
        self.plural = plural
        self.claims = claims
        self.prepare = prepare
        self.fault_prefix = fault_prefix

    def check_usage(self, invocation: Invocation) -> None:
        """Raises UsageError for a verb or a flag that does not apply to this kind of root."""
        verb, line = invocation.verb, invocation.line
        if verb.only_for not in ("", self.plural):
            raise UsageError(f"{verb.name} applies only to {verb.only_for}; the root is {self.name}")
        for flag in verb.flags:
            if flag.only_for == self.plural and flag.required and not line.get(flag):
                raise UsageError(f"{flag.synopsis} is required for {self.plural}")
            if flag.only_for not in ("", self.plural) and line.is_set(flag):
                raise UsageError(f"-{flag.name} applies only to {flag.only_for}; the root is {self.name}")


def backend_of(text: bytes) -> Backend | None:
    """The kind of root that `-checkpoint` names; None if it cannot be one of any kind."""
    return next((backend for backend in BACKENDS if backend.claims(text)), None)


def prepare(invocation: Invocation, *, long_running: bool = False) -> Prepared:
    """Checks usage, then the root, then the credential list (cli.6). Raises UsageError and PublishError.

    `long_running`: the verb outlives a restart of the store and its own credentials.
    """
    text = invocation.line[CHECKPOINT]
    backend = backend_of(text)
    if backend is None:
        # Raises: no backend claims what is not a path.
        parse_directory(text, b"/", _is_same_directory)
        raise ConfigError(f"not a checkpoint root: {to_text(text)}")
    backend.check_usage(invocation)
    return backend.prepare(invocation, text, long_running)


def run(invocation: Invocation, work: Callable[[OpenRoot], T]) -> T:
    """What `work` returns for the opened root, all of it held to `-timeout`."""
    prepared = prepare(invocation)
    return prepared.deadline.run(lambda: work(prepared.open()))


def fresh_name() -> bytes:
    """A name that no other execution has."""
    from publish.adapters.clock import SystemRandom

    return SystemRandom().token().encode()


def _prepare_directory(invocation: Invocation, text: bytes, long_running: bool) -> Prepared:  # noqa: FBT001  (as Backend.prepare)
    root = parse_directory(text, _working_directory(text), _is_same_directory)
    # Mounts have time-outs of their own: only a watch's last scan is bounded by -timeout.
    limit = invocation.line[TIMEOUT] if long_running else None
    deadline = Deadline(invocation.started, limit, bounded=False)
    return Prepared(deadline, lambda: _open_directory(invocation, root, deadline, long_running=long_running))


def _open_directory(invocation: Invocation, root: PosixRoot, deadline: Deadline, *, long_running: bool) -> OpenRoot:
    from publish.adapters.clock import SystemClock, SystemRandom
    from publish.adapters.posix import PosixStore, leads_to

    is_root = leads_to(root.path)
    # A watch outlives passing faults for the time of a scan; other verbs repeat a stale file handle only (nfs.6).
    seconds = invocation.line[TIMEOUT] if long_running else STALE_RETRY_SECONDS
    return OpenRoot(
        root,
        RetryingStore(
            PosixStore(root.path, invocation.output.log, outlives_faults=long_running),
            SystemClock(),
            SystemRandom(),
            RetryLimits(seconds, seconds),
            started=monotonic(),
            on_retry=_log_retries(invocation, long_running=long_running),
            enter_step=deadline.enter_request,
        ),
        Reporter(invocation.output, root, invocation.verb.name),
        _one_by_one,
        lambda path: root.locate(path, _working_directory(path), is_root),
    )


def _prepare_s3(invocation: Invocation, text: bytes, long_running: bool) -> Prepared:  # noqa: FBT001  (as Backend.prepare)
    from publish.domain.credentials import parse_creds

    root = parse_s3_url(text)
    # Before the deadline: however little time there is, a wrong list is reported as such.
    items = parse_creds(invocation.line[CREDS], _sources_directory())
    deadline = Deadline(invocation.started, invocation.line[TIMEOUT])
    deadline.enter_source("before the first source")
    return Prepared(deadline, lambda: _open_s3(invocation, root, items, deadline, long_running=long_running))


def _open_s3(
    invocation: Invocation, root: S3Root, items: Iterable[SourceSpec], deadline: Deadline, *, long_running: bool
) -> OpenRoot:
    from publish.adapters.process_memory import DumpsForbidden
    from publish.domain.credentials import resolve_credentials

    dumps = DumpsForbidden()
    line, output = invocation.line, invocation.output

    def resolve() -> tuple[str, Credentials]:
        found = resolve_credentials(
            (_source(item, invocation) for item in items), deadline.remaining, deadline.enter_source
        )
        # Never withdrawn: after a refresh the store may still echo the previous credentials.
        output.redact(found[1].secret_access_key, found[1].session_token or "")
        return found

    source, credentials = resolve()
    _log_plaintext(items, credentials, output)
    deadline.enter_request("connect")
    _silence_libraries()

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
        on_retry=_log_retries(invocation, long_running=long_running),
        enter_step=deadline.enter_request,
    )
    return OpenRoot(
        root,
        retrying,
        Reporter(output, root, invocation.verb.name),
        _in_parallel,
        lambda path: root.locate(path, b"/", lambda _: False),
        source,
        lambda: probe(retrying.retry, store, random, race),
        dumps,
    )


def _log_plaintext(items: Iterable[SourceSpec], credentials: Credentials, output: Output) -> None:
    """Warns of servers that are reached through a network without TLS."""
    from publish.domain.credentials import VaultSpec
    from publish.domain.server_url import parse_origin, plaintext_risk

    risks = {
        item.location.server: "read the credentials, or replace them" for item in items if isinstance(item, VaultSpec)
    }
    if credentials.endpoint is not None:
        risks[parse_origin(credentials.endpoint)] = "change what is listed, and so what prune deletes below the prefix"
    for origin, risk in risks.items():
        note = plaintext_risk(origin, risk)
        if note is not None:
            output.log(note)


def _log_retries(invocation: Invocation, *, long_running: bool) -> OnRetry:
    """Tells the user that a request failed and is retried."""
    prefix = invocation.verb.name if long_running else "store"

    def log(step: str, fault: StoreFault, remaining: float) -> None:
        invocation.output.log(f"{prefix}: {step} failed, retrying for up to {remaining:.0f}s: {fault}")

    return log


def _silence_libraries() -> None:
    """Keeps the libraries' log records off stderr: they lack the prefix and may hold a token."""
    import logging

    logging.getLogger().addHandler(logging.NullHandler())


def _source(item: SourceSpec, invocation: Invocation) -> Source:
    """The source that an item of `-creds` names, built when it is about to be asked."""
    from publish.adapters.secret_files import directory_source
    from publish.domain.credentials import DirectorySpec

    if isinstance(item, DirectorySpec):
        return directory_source(item)

    _silence_libraries()
    from publish.adapters.ca_bundle import system_ca_bundle
    from publish.adapters.vault import VaultSource

    return VaultSource(
        item.name,
        item.location,
        ca_bundle=system_ca_bundle(),
        environment=invocation.env,
        timeout=invocation.line[TIMEOUT],
    )


def _is_same_directory(one: bytes, other: bytes) -> bool:
    from publish.adapters._io import same_directory

    return same_directory(one, other)


def _working_directory(path: bytes) -> bytes:
    """The directory that `path` is relative to. Raises ConfigError if it is needed and was removed."""
    if path.startswith((b"/", b"s3://")):
        return b"/"
    try:
        return os.getcwdb()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise ConfigError(
            f"the path is relative, and the working directory is gone ({why}): {to_text(path)}"
        ) from error


def _sources_directory() -> bytes:
    """The directory that sources are relative to; nothing is found in one that was removed (creds.7)."""
    try:
        return os.getcwdb()
    except OSError:
        return b"/proc/self/cwd"


def _one_by_one(work: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
    return map(work, items)


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

    with ThreadPoolExecutor(_WORKERS) as pool:
        yield from pool.map(work, items)


BACKENDS = (
    Backend("an S3 root", ONLY_S3, is_s3_url, _prepare_s3, fault_prefix="store: "),
    Backend("a directory", ONLY_DIRECTORIES, is_directory_path, _prepare_directory),
)
