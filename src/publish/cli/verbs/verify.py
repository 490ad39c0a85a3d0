"""`publish verify`: tell whether saves are whole."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.goflag import Flag, boolean, path
from publish.cli.output import escape
from publish.cli.verbs.common import CHECKPOINT, EXIT_FAILURE, EXIT_OK, S3_FLAGS, Invocation, Verb, positional
from publish.cli.verdicts import describe, log_unread
from publish.domain.errors import UsageError
from publish.domain.verify import published_saves
from publish.domain.wholeness import check_save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot

ALL = Flag("all", boolean, "", "look at the save of every publication", default="false")


def run(invocation: Invocation) -> int:
    """Prints one line for each save. Raises PublishError."""
    line = invocation.line
    given = [positional("SAVE", path, value) for value in line.positionals]
    every = line[ALL]
    if every and given:
        raise UsageError(f"-{ALL.name} and SAVE exclude each other")

    def verify(opened: OpenRoot) -> int:
        saves = [opened.locate_save(save) for save in given]
        if not given:
            saves = published_saves(opened.store)[0 if every else -1 :]
        return sum(not _print_verdict(invocation, opened, save) for save in saves)

    broken = backends.run(invocation, verify)
    if broken:
        invocation.output.log(f"verify: broken saves: {broken}")
        return EXIT_FAILURE
    return EXIT_OK


def _print_verdict(invocation: Invocation, opened: OpenRoot, save: bytes) -> bool:
    verdict = check_save(opened.store, save, opened.parallel)
    log_unread(invocation.output, opened.root, save, verdict)
    invocation.output.print_result(escape(describe(opened.root, save, verdict)))
    return verdict.is_whole


VERB = Verb(
    "verify",
    run,
    "tell whether saves are whole",
    (
        "Reads the latest publication's save, or those given, and prints a line for each: whole SAVE, or",
        "broken SAVE: FILE: WHY. Whole means that each file has all the parts that it and other files refer to:",
        "safetensors, torch.save's files, distributed checkpoints, indexes, JSON, one file for each rank. The data",
        "itself is not compared with anything, and files of other kinds are not judged.",
    ),
    (CHECKPOINT, ALL, *S3_FLAGS),
    "publish verify -checkpoint /data/run-7",
    positionals=("[SAVE...]",),
    success="every save is whole, or nothing is published yet",
)
