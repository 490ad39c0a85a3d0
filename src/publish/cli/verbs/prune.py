"""`publish prune`: remove old publications and their saves."""

from __future__ import annotations

from functools import partial

from publish.cli import backends
from publish.cli.goflag import Flag, boolean, positive
from publish.cli.verbs.common import CHECKPOINT, EXIT_FAILURE, EXIT_OK, KEEP_EVERY, S3_FLAGS, VERIFY, Invocation, Verb
from publish.cli.verdicts import save_checker
from publish.domain.executions import resumed_by_newest
from publish.domain.prune import Guards, prune, prune_dry_run
from publish.domain.retention import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot

KEEP = Flag("keep", positive, "N", "how many of the latest publications to keep, at least 1", default="3")
DRY_RUN = Flag(
    "dry-run", boolean, "", "print what would be removed and why the rest stays; change nothing", default="false"
)


def run(invocation: Invocation) -> int:
    """Keeps the latest publications and removes the others. Raises PublishError."""
    line = invocation.line
    policy, dry_run, verify = Policy(line[KEEP], line.get(KEEP_EVERY)), line[DRY_RUN], line[VERIFY]

    def work(opened: OpenRoot) -> bool:
        is_whole = save_checker(invocation, opened).is_whole if verify else None
        guards = Guards(partial(resumed_by_newest, opened.store), is_whole)
        if dry_run:
            prune_dry_run(opened.store, opened.reporter, policy, opened.parallel, guards)
            return True
        return prune(opened.store, opened.reporter, policy, opened.parallel, guards)

    return EXIT_OK if backends.run(invocation, work) else EXIT_FAILURE


VERB = Verb(
    "prune",
    run,
    "remove old publications and their saves",
    (
        "Keeps the latest publications, removes the others and then the folders they named, except folders that",
        "a remaining publication names, lies in or contains. A folder behind a symbolic link is left in place.",
        "If it is killed half way, the next prune finishes the work. With -verify only whole saves count as the",
        "latest, what is newer than the oldest of them stays too, and if none is whole nothing is removed.",
    ),
    (CHECKPOINT, KEEP, KEEP_EVERY, VERIFY, DRY_RUN, *S3_FLAGS),
    "publish prune -checkpoint /data/run-7 -keep 5",
    success="everything that had to go is gone, or there was nothing to remove",
)
