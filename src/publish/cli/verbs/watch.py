"""`publish watch`: publish saves as training completes them."""

from __future__ import annotations

from time import monotonic

from publish.cli import backends
from publish.cli.goflag import Flag, duration, path
from publish.cli.signals import StopSignal
from publish.cli.verbs.common import (
    ATTEMPT,
    CHECKPOINT,
    CREDS,
    EPOCH,
    EXIT_OK,
    PROXY,
    TIMEOUT,
    Invocation,
    Verb,
    attempt_name,
    positional,
)
from publish.domain.entry import overlap, to_text
from publish.domain.errors import ConfigError, UsageError
from publish.domain.frameworks import FRAMEWORKS, Framework
from publish.domain.ports import Namespace
from publish.domain.watch import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends import OpenRoot


def _framework(value: str) -> Framework:
    framework = FRAMEWORKS.get(value)
    if framework is None:
        raise UsageError(f"expected {' or '.join(FRAMEWORKS)}: {value}")
    return framework


FRAMEWORK = Flag("framework", _framework, "|".join(FRAMEWORKS), "the framework that writes the saves", required=True)
INTERVAL = Flag("interval", duration, "DURATION", "how long to wait between two scans", default="10s")
SCAN_TIMEOUT = Flag(
    TIMEOUT.name,
    duration,
    TIMEOUT.metavar,
    "how long one scan may take on an S3 root, or the last scan on a directory",
    default=TIMEOUT.default,
)


def run(invocation: Invocation) -> int:
    """Publishes saves until a signal asks it to stop; then finishes its scan and scans once more (watch.6)."""
    line = invocation.line
    framework, interval, epoch = line[FRAMEWORK], line[INTERVAL], line[EPOCH]
    saves = positional("SAVES", path, line.positionals[0]) if line.positionals else None
    attempt = b"" if saves else attempt_name(line)

    stop = StopSignal()
    prepared = backends.prepare(invocation, long_running=True)
    deadline = prepared.deadline
    opened = deadline.run(prepared.open)
    folder = _saves_folder(opened, saves or opened.root.render(b"exec/" + attempt))
    watcher = Watcher(opened.store, opened.reporter, opened.root, framework, folder, epoch)
    deadline.run(watcher.begin)
    while True:
        is_last = stop.requested
        if is_last:
            deadline.bind()
        began = monotonic()
        deadline.restart()
        opened.store.restart()
        deadline.run(watcher.scan)
        if is_last:
            return EXIT_OK
        stop.wait(began + interval - monotonic())


def _saves_folder(opened: OpenRoot, saves: bytes) -> bytes:
    """The folder SAVES, relative to the root. Raises ConfigError."""
    folder = opened.locate(saves)
    for namespace in Namespace:
        if folder and overlap(folder, namespace.value):
            raise ConfigError(
                f"{to_text(namespace.value)}/ is reserved for publish and cannot be SAVES: {to_text(saves)}"
            )
    return folder


VERB = Verb(
    "watch",
    run,
    "publish saves as training completes them",
    (
        "Runs beside training. Every interval it looks at the save folders in SAVES (default: the folder",
        "exec/ATTEMPT in the root) and publishes each complete one once, in step order. On SIGTERM or SIGINT it",
        "finishes its scan, scans once more and ends; a second signal ends it at once.",
        "",
        "With -framework hf a save is a folder checkpoint-<step> whose trainer_state.json is whole; with dcp a",
        "folder such as step-<step>, iter_<step>, epoch=<n>-step=<step>.ckpt or <step> with a .metadata in it.",
    ),
    (CHECKPOINT, FRAMEWORK, INTERVAL, EPOCH, ATTEMPT, CREDS, PROXY, SCAN_TIMEOUT),
    "publish watch -checkpoint /data/run-7 -framework hf -epoch 4 -attempt try-4 &",
    positionals=("[SAVES]",),
    success="a signal told it to stop, and the last scan was clean",
)
