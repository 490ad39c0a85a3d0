"""`publish probe`: check an S3 root before a job is accepted."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.goflag import Flag, path
from publish.cli.verbs.common import EXIT_OK, ONLY_S3, S3_FLAGS, Invocation, Verb

CHECKPOINT = Flag("checkpoint", path, "s3://BUCKET/PREFIX", "the checkpoint root", required=True)


def run(invocation: Invocation) -> int:
    """Probes the store and prints what answered. Raises PublishError."""
    invocation.output.print_result(backends.run(invocation, lambda opened: opened.probe()))
    return EXIT_OK


VERB = Verb(
    "probe",
    run,
    "check an S3 root before a job is accepted",
    (
        "Resolves the credentials, then writes, reads and deletes an object beside pub/, lists pub/, and checks that",
        "the store honours conditional writes, alone and in a race. Prints the root and the source that answered.",
    ),
    (CHECKPOINT, *S3_FLAGS),
    "publish probe -checkpoint s3://ckpts/run-7 -creds secret:/var/run/secrets/ckpt-s3",
    success="the store does what publish needs",
    only_for=ONLY_S3,
)
