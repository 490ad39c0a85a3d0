"""`publish begin`: give one execution its epoch and the save that it resumes from."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.beginning import FROM, beginning, variables
from publish.cli.goflag import Flag, boolean
from publish.cli.verbs.common import (
    ATTEMPT,
    CHECKPOINT,
    EPOCH,
    EXIT_OK,
    S3_FLAGS,
    VERIFY,
    Invocation,
    Verb,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot
    from publish.domain.executions import Execution
    from publish.domain.root import Root

JSON = Flag("json", boolean, "", "print one JSON object", default="false")

_SAFE_IN_SHELL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-"


def run(invocation: Invocation) -> int:
    """Prints what this attempt begins with. Raises PublishError."""
    as_json = invocation.line[JSON]
    work = beginning(invocation, verify=invocation.line[VERIFY])

    def answer(opened: OpenRoot) -> bytes:
        execution = work(opened)
        return _as_json(opened.root, execution) if as_json else _as_assignments(opened.root, execution)

    invocation.output.print_result(backends.run(invocation, answer))
    return EXIT_OK


def _as_assignments(root: Root, execution: Execution) -> bytes:
    return b"\n".join(name + b"=" + _quote(value) for name, value in variables(root, execution).items())


def _quote(value: bytes) -> bytes:
    """One word of a POSIX shell, in which no byte but a single quote means anything (POSIX, XCU 2.2.2)."""
    if value.strip(_SAFE_IN_SHELL):
        return b"'" + value.replace(b"'", b"'\\''") + b"'"
    return value or b"''"


def _as_json(root: Root, execution: Execution) -> bytes:
    import json  # start-up: few ask for it

    texts = {name: value.decode("utf-8", "surrogateescape") for name, value in variables(root, execution).items()}
    return json.dumps(
        {
            "epoch": execution.epoch,
            "attempt": texts[b"DISPATCH_ATTEMPT"],
            "resume": texts[b"DISPATCH_RESUME"] or None,
            "saves": texts[b"DISPATCH_SAVES"],
        }
    ).encode()


VERB = Verb(
    "begin",
    run,
    "give one execution its epoch and the save to resume from",
    (
        "Prints four shell assignments: DISPATCH_EPOCH, DISPATCH_ATTEMPT, DISPATCH_RESUME (the save to resume from;",
        "empty: start from step 0) and DISPATCH_SAVES (the folder to save in). Every call with the same attempt gives",
        "the same answer, on any node, at any time: let each execution have an attempt of its own, and each of its",
        "nodes the same one. Without one, every call is an execution of its own. Without an epoch it takes one above",
        "every earlier one. With -verify it resumes from the newest save that is whole, names each newer one that is",
        "not, and fails if none is.",
    ),
    (CHECKPOINT, ATTEMPT, EPOCH, FROM, VERIFY, JSON, *S3_FLAGS),
    'begun=$(publish begin -checkpoint /data/run-7 -attempt job-12-0) || exit; eval "$begun"',
    success="the execution has begun, now or before",
)
