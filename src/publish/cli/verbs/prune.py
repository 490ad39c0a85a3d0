"""`publish prune`: remove old publications and their saves."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.goflag import Flag, positive
from publish.cli.verbs.common import CHECKPOINT, EXIT_FAILURE, EXIT_OK, S3_FLAGS, Invocation, Verb
from publish.domain.prune import prune

KEEP = Flag("keep", positive, "N", "how many of the latest publications to keep, at least 1", default="3")


def run(invocation: Invocation) -> int:
    """Keeps the latest publications and removes the others. Raises PublishError."""
    keep = invocation.line[KEEP]
    complete = backends.run(invocation, lambda opened: prune(opened.store, opened.reporter, keep, opened.parallel))
    return EXIT_OK if complete else EXIT_FAILURE


VERB = Verb(
    "prune",
    run,
    "remove old publications and their saves",
    (
        "Keeps the latest publications, removes the others and then the folders they named, except folders that",
        "a remaining publication names, lies in or contains. A folder behind a symbolic link is left in place.",
        "If it is killed half way, the next prune finishes the work.",
    ),
    (CHECKPOINT, KEEP, *S3_FLAGS),
    "publish prune -checkpoint /data/run-7 -keep 5",
    success="everything that had to go is gone, or there was nothing to remove",
)
