"""Error messages: where to look first, then what is wrong."""

from __future__ import annotations

import os

from publish.cli import backends
from publish.cli.verbs.common import CHECKPOINT
from publish.domain.errors import CredentialsError, PublishError, StoreFault, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.verbs.common import Invocation

# Faults of one kind that are printed one by one; the others are counted.
MAX_FAULTS_SHOWN = 20


def log_error(invocation: Invocation, error: PublishError) -> None:
    """Logs the error, and the faults of the same kind that were found with it."""
    for line in describe(invocation, error):
        invocation.output.log(line)


def describe(invocation: Invocation, error: Exception) -> list[str]:
    """A line for the error and for each fault of the same kind that was found with it."""
    if not isinstance(error, PublishError):
        return [describe_internal_error(error)]
    backend = backends.backend_of(invocation.line[CHECKPOINT])
    prefix = backend.fault_prefix if backend else ""
    lines = [_message(fault, prefix) for fault in (error, *error.more[: MAX_FAULTS_SHOWN - 1])]
    if len(error.more) >= MAX_FAULTS_SHOWN:
        lines.append(f"and {len(error.more) + 1 - MAX_FAULTS_SHOWN} more")
    return lines


def describe_internal_error(error: Exception) -> str:
    """The type of an unforeseen error and the lines that it came through: its text may hold a secret."""
    return f"internal error, please report it: {type(error).__name__} at {_places(error)}"


def _message(error: PublishError, fault_prefix: str) -> str:
    """The message, which begins with the place to look at: the credentials or the store."""
    if isinstance(error, CredentialsError):
        return f"credentials: {error}"
    if isinstance(error, StoreFault | TimedOut):
        return f"{fault_prefix}{error}"
    return str(error)


def _places(error: Exception) -> str:
    """The files and lines that the error came through, the innermost last."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}")
        trace = trace.tb_next
    return ", ".join(places)
