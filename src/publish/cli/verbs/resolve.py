"""`publish resolve`: print the save to resume from."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.goflag import Flag, boolean
from publish.cli.verbs.common import CHECKPOINT, EXIT_OK, ONLY_S3, S3_FLAGS, VERIFY, Invocation, Verb
from publish.domain.entry import to_text
from publish.domain.resolve import latest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot
    from publish.domain.entry import Entry

PROBE = Flag("probe", boolean, "", "run the checks of `publish probe` first", default="false", only_for=ONLY_S3)


def run(invocation: Invocation) -> int:
    """Prints the latest publication's save, if there is one. Raises PublishError."""
    probe_first, verify = invocation.line[PROBE], invocation.line[VERIFY]

    def resolve(opened: OpenRoot) -> bytes | None:
        if probe_first:
            invocation.output.log(to_text(opened.probe()))
        entry = _latest_whole(invocation, opened) if verify else latest(opened.store)
        return None if entry is None else opened.root.render(entry.path)

    save = backends.run(invocation, resolve)
    if save is not None:
        invocation.output.print_result(save)
    return EXIT_OK


def _latest_whole(invocation: Invocation, opened: OpenRoot) -> Entry | None:
    from publish.cli.verdicts import save_checker  # start-up: only with -verify
    from publish.domain.verify import latest_whole

    return latest_whole(opened.store, save_checker(invocation, opened))


VERB = Verb(
    "resolve",
    run,
    "print the save to resume from",
    (
        "Prints the latest publication's save, as an absolute path or an s3:// URL, or nothing if nothing is",
        "published yet. If it cannot tell, it prints nothing and fails, so that no job starts from step 0 because",
        "it looked in the wrong place. Make it the job script's first action. With -verify it takes the newest",
        "save that is whole, names each newer one that is not, and fails if none is.",
    ),
    (CHECKPOINT, *S3_FLAGS, PROBE, VERIFY),
    "SAVE=$(publish resolve -checkpoint /data/run-7) || exit",
    success="the save is printed, or nothing is published yet",
)
