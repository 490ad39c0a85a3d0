"""A checkpoint root that is a directory."""

from __future__ import annotations

import os
from time import monotonic

from publish.cli.backends.backend import Backend, OpenRoot, Prepared, log_retries
from publish.cli.deadline import Deadline
from publish.cli.reporter import Reporter
from publish.cli.verbs.common import ONLY_DIRECTORIES, TIMEOUT
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError
from publish.domain.retry import RetryLimits
from publish.domain.retrying_store import RetryingStore
from publish.domain.root import is_directory_path, parse_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.verbs.common import Invocation
    from publish.domain.root import PosixRoot

# For so long a verb repeats what failed with a stale file handle (nfs.6).
_STALE_LIMITS = RetryLimits(10.0, 10.0, set_by="tried again for ")


def _prepare(invocation: Invocation, text: bytes, long_running: bool) -> Prepared:  # noqa: FBT001  (as Backend.prepare)
    root = parse_directory(text, _working_directory(text), _is_same_directory)
    # Mounts have time-outs of their own: only a watch's final scan is bounded by -timeout.
    limit = invocation.line[TIMEOUT] if long_running else None
    deadline = Deadline(invocation.started, limit, bounded=False)
    return Prepared(deadline, lambda: _open(invocation, root, deadline, long_running=long_running))


def _open(invocation: Invocation, root: PosixRoot, deadline: Deadline, *, long_running: bool) -> OpenRoot:
    from publish.adapters.clock import SystemClock, SystemRandom
    from publish.adapters.posix import PosixStore

    # A watch outlives passing faults for the time of a scan; other verbs repeat a stale file handle only (nfs.6).
    seconds = invocation.line[TIMEOUT]
    limits = RetryLimits(seconds, seconds) if long_running else _STALE_LIMITS
    return OpenRoot(
        root,
        RetryingStore(
            PosixStore(root.path, invocation.output.log, outlives_faults=long_running),
            SystemClock(),
            SystemRandom(),
            limits,
            started=monotonic(),
            on_retry=log_retries(invocation, long_running=long_running),
            enter_step=deadline.enter_request,
        ),
        Reporter(invocation.output, root, invocation.verb.name),
        map,
        lambda path: root.locate(path, _working_directory(path), lambda one: _is_same_directory(one, root.path)),
    )


def _is_same_directory(one: bytes, other: bytes) -> bool:
    from publish.adapters.posix import same_directory

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


BACKEND = Backend("a directory", ONLY_DIRECTORIES, is_directory_path, _prepare)
