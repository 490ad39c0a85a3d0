"""`publish retract`: take back the publications of one save."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.goflag import Flag, boolean, path
from publish.cli.verbs.common import CHECKPOINT, EXIT_FAILURE, EXIT_OK, S3_FLAGS, Invocation, Verb, positional
from publish.domain.entry import to_text
from publish.domain.retract import retract, retract_and_delete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot

DELETE = Flag("delete", boolean, "", "remove the save as well, as prune does", default="false")


def run(invocation: Invocation) -> int:
    """Takes back every publication of SAVE. Raises PublishError."""
    save = positional("SAVE", path, invocation.line.positionals[0])
    delete = invocation.line[DELETE]

    def work(opened: OpenRoot) -> bool:
        below_root = opened.locate_save(save)
        if delete:
            return retract_and_delete(opened.store, opened.reporter, below_root, opened.parallel)
        if not retract(opened.store, opened.reporter, below_root):
            return False
        invocation.output.log(
            "retract: the save stays in its folder (-delete removes it); a watch that is started on that folder "
            "publishes it again, and a prune that is running already may remove it: "
            f"{to_text(opened.root.render(below_root))}"
        )
        return True

    return EXIT_OK if backends.run(invocation, work) else EXIT_FAILURE


VERB = Verb(
    "retract",
    run,
    "take back the publications of one save",
    (
        "Removes every publication of SAVE, a path or an s3:// URL under the root, so that resolve answers with what",
        "is left. The save is left alone, unless -delete is given: then it goes too, as prune removes it, unless",
        "another publication needs it or a symbolic link is on its path. If it is killed, run it again, or prune.",
    ),
    (CHECKPOINT, DELETE, *S3_FLAGS),
    "publish retract -checkpoint /data/run-7 -delete /data/run-7/exec/try-4/checkpoint-900",
    positionals=("SAVE",),
    success="the publications are taken back, and with -delete everything that had to go is gone",
)
