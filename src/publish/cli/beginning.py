"""How an execution begins, for the verbs that begin one: `begin` and `run`."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.goflag import Flag, path
from publish.cli.verbs.common import ATTEMPT, EPOCH, Invocation, attempt_name
from publish.domain.begin import BeginOptions, begin, latest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from publish.cli.backends.backend import OpenRoot
    from publish.domain.begin import Choose
    from publish.domain.executions import Execution
    from publish.domain.root import Root

FROM = Flag("from", path, "SAVE", "resume from this publication, to go back; default: the latest")
OWN_EPOCH = EPOCH.described_as(f"this execution's epoch; default: ${EPOCH.variable}, else one above every earlier one")
OWN_ATTEMPT = ATTEMPT.described_as(f"this execution's name; default: ${ATTEMPT.variable}, else a fresh name")


def beginning(invocation: Invocation, *, verify: bool) -> Callable[[OpenRoot], Execution]:
    """What begins an execution on a root. Raises UsageError before any root is looked at (cli.6)."""
    line = invocation.line
    attempt = backends.fresh_name() if line.get(ATTEMPT) is None else attempt_name(line)
    epoch, save = line.get(EPOCH), line.get(FROM)

    def begin_on(opened: OpenRoot) -> Execution:
        options = BeginOptions(epoch, None if save is None else opened.locate_save(save))
        return begin(opened.store, attempt, options, _whole_only(invocation, opened) if verify else latest_of)

    return begin_on


def _whole_only(invocation: Invocation, opened: OpenRoot) -> Choose:
    from publish.cli.verdicts import save_checker  # start-up: only with -verify
    from publish.domain.verify import newest_whole

    checker = save_checker(invocation, opened)
    return lambda log: newest_whole(log, checker)


def variables(root: Root, execution: Execution) -> Mapping[bytes, bytes]:
    """The environment variables of an execution (begin.3)."""
    return {
        b"DISPATCH_EPOCH": b"%d" % execution.epoch,
        b"DISPATCH_ATTEMPT": execution.attempt,
        b"DISPATCH_RESUME": root.render(execution.resume.path) if execution.resume else b"",
        b"DISPATCH_SAVES": root.render(execution.folder),
    }
