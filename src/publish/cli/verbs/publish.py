"""`publish publish`: publish one save."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.goflag import path, unsigned
from publish.cli.verbs.common import CHECKPOINT, EPOCH, EXIT_OK, S3_FLAGS, SYNC, Invocation, Verb, positional
from publish.domain.entry import Entry
from publish.domain.publish import publish_save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot


def run(invocation: Invocation) -> int:
    """Publishes SAVE as the save of STEP. Raises PublishError."""
    save_text, step_text = invocation.line.positionals
    epoch, sync = invocation.line[EPOCH], invocation.line[SYNC]
    save = positional("SAVE", path, save_text)
    step = positional("STEP", unsigned, step_text)

    def publish(opened: OpenRoot) -> None:
        entry = Entry.of(epoch, step, opened.locate_save(save))
        publish_save(opened.store, opened.reporter, entry, sync=sync)

    backends.run(invocation, publish)
    return EXIT_OK


VERB = Verb(
    "publish",
    run,
    "publish one save",
    (
        "Publishes the save at SAVE, a path or an s3:// URL under the root, as the save of STEP. Run it only once",
        "the save is complete: publish does not check that. A save that is published already stays published.",
    ),
    (CHECKPOINT, EPOCH, SYNC, *S3_FLAGS),
    "publish publish -checkpoint /data/run-7 -epoch 4 /data/run-7/exec/try-4/step-900 900",
    positionals=("SAVE", "STEP"),
    success="the save is published, now or before",
)
