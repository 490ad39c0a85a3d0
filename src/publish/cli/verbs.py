"""The verbs: each one's flags, positionals and words of help. The parser, the help and the README follow this table."""

from __future__ import annotations

from typing import NamedTuple

from publish.cli import flags
from publish.cli.flags import Flag


class Verb(NamedTuple):
    """One verb. `usage` is how to call it, `positionals` are their names, an optional one in brackets."""

    name: str
    usage: str
    summary: str
    about: tuple[str, ...]
    flags: tuple[Flag, ...]
    example: str
    positionals: tuple[str, ...] = ()
    success: str = "done"


VERBS = (
    Verb(
        "resolve",
        "publish resolve -checkpoint ROOT [flags]",
        "print the save to resume from",
        (
            "Prints the latest publication's save, as an absolute path or an s3:// URL, or nothing where nothing is",
            "published yet. Where it cannot tell it prints nothing and fails, so that no job starts from step 0",
            "because it looked in the wrong place. Make it the job script's first action.",
        ),
        (flags.CHECKPOINT, flags.CREDS, flags.PROXY, flags.TIMEOUT, flags.PROBE),
        "SAVE=$(publish resolve -checkpoint /data/run-7) || exit",
        success="the save is printed, or nothing is published yet",
    ),
    Verb(
        "watch",
        "publish watch -checkpoint ROOT -framework hf|dcp [flags] [SAVES]",
        "publish saves as training completes them",
        (
            "Runs beside training. Every interval it looks at the save folders in SAVES (default: the folder",
            "exec/ATTEMPT in the root) and publishes each complete one once, in step order. On SIGTERM or SIGINT it",
            "finishes its scan, scans once more and ends; a second signal ends it at once.",
            "",
            "With -framework hf a save is a folder checkpoint-<step> whose trainer_state.json is whole; with dcp a",
            "folder such as step-<step>, iter_<step>, epoch=<n>-step=<step>.ckpt or <step> with a .metadata in it.",
        ),
        (
            flags.CHECKPOINT,
            flags.FRAMEWORK,
            flags.INTERVAL,
            flags.EPOCH,
            flags.ATTEMPT,
            flags.CREDS,
            flags.PROXY,
            flags.SCAN_TIMEOUT,
        ),
        "publish watch -checkpoint /data/run-7 -framework hf -epoch 4 -attempt try-4 &",
        ("[SAVES]",),
        success="a signal told it to stop, and the last scan was clean",
    ),
    Verb(
        "publish",
        "publish publish -checkpoint ROOT [flags] SAVE STEP",
        "publish one save",
        (
            "Publishes the save at SAVE, a path or an s3:// URL under the root, as that of STEP. Run it only once the",
            "save is complete: nothing about that is looked at. A save that is published already stays as it is.",
        ),
        (flags.CHECKPOINT, flags.EPOCH, flags.CREDS, flags.PROXY, flags.TIMEOUT),
        "publish publish -checkpoint /data/run-7 -epoch 4 /data/run-7/exec/try-4/step-900 900",
        ("SAVE", "STEP"),
        success="the save is published, now or already",
    ),
    Verb(
        "prune",
        "publish prune -checkpoint ROOT [flags]",
        "remove old publications and their saves",
        (
            "Keeps the latest publications, removes the others and then the folders they named, except folders that",
            "a remaining publication names, lies in or lies around. A folder behind a symbolic link is left in place.",
            "Killed half way, it is finished by the next prune.",
        ),
        (flags.CHECKPOINT, flags.KEEP, flags.CREDS, flags.PROXY, flags.TIMEOUT),
        "publish prune -checkpoint /data/run-7 -keep 5",
        success="what could go is gone, or there was nothing to remove",
    ),
    Verb(
        "probe",
        "publish probe -checkpoint s3://BUCKET/PREFIX -creds LIST [flags]",
        "check an S3 root before a job is accepted",
        (
            "Resolves the credentials, then writes, reads and deletes an object beside pub/, lists pub/, and holds the",
            "store to conditional writes, alone and in a race. Prints the root and the source that answered.",
        ),
        (flags.CHECKPOINT, flags.CREDS, flags.PROXY, flags.TIMEOUT),
        "publish probe -checkpoint s3://ckpts/run-7 -creds secret:/var/run/secrets/ckpt-s3",
        success="the store does what publish needs",
    ),
)

BY_NAME = {verb.name: verb for verb in VERBS}
