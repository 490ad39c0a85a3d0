"""The kinds of checkpoint root: the composition root, the one package of the command line that imports adapters.

A kind is a module with its `BACKEND`, and a row of `BACKENDS`. Adapters are imported when a root of their kind is
opened: the clients of S3 and Vault take far longer to import than a directory takes to be resolved.
"""

from __future__ import annotations

from publish.cli.backends import directory, s3
from publish.cli.verbs.common import CHECKPOINT
from publish.domain.light_typing import TypeVar
from publish.domain.root import unknown_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from publish.cli.backends.backend import Backend, OpenRoot, Prepared
    from publish.cli.verbs.common import Invocation

T = TypeVar("T")

BACKENDS = (s3.BACKEND, directory.BACKEND)


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
        raise unknown_kind(text)
    backend.check_usage(invocation)
    return backend.prepare(invocation, text, long_running)


def run(invocation: Invocation, work: Callable[[OpenRoot], T]) -> T:
    """What `work` returns for the opened root, all of it held to `-timeout`."""
    prepared = prepare(invocation)

    def open_and_work() -> T:
        opened = prepared.open()
        return opened.naming_saves(lambda: work(opened))

    return prepared.deadline.run(open_and_work)


def fresh_name() -> bytes:
    """A name that no other execution has."""
    from publish.adapters.clock import SystemRandom

    return SystemRandom().token().encode()


def replace_file(path: bytes, content: str) -> None:
    """Writes a whole file for the user. Raises ConfigError."""
    from publish.adapters.file_replacement import replace_file as replace

    replace(path, content)
