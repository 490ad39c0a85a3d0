"""`publish watch`: publish saves as training completes them."""

from __future__ import annotations

from publish.cli import backends
from publish.cli.framework_flags import FRAMEWORK_FLAGS
from publish.cli.goflag import path
from publish.cli.signals import StopSignal
from publish.cli.verbs.common import (
    ATTEMPT,
    CHECKPOINT,
    CREDS,
    EPOCH,
    EXIT_OK,
    KEEP_EVERY,
    PROXY,
    SYNC,
    VERIFY,
    Invocation,
    Verb,
    attempt_name,
    positional,
)
from publish.cli.watch_loop import WatchLoop
from publish.cli.watch_options import INTERVAL, KEEP, SCAN_TIMEOUT, WatchOptions
from publish.domain.entry import EXECUTIONS, RESERVED, overlap, to_text
from publish.domain.errors import ConfigError
from publish.domain.frameworks import FRAMEWORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot


def run(invocation: Invocation) -> int:
    """Publishes saves until a signal asks it to stop; then finishes its scan and scans once more (watch.6)."""
    line = invocation.line
    watch, epoch = WatchOptions(invocation, verify=line[VERIFY]), line[EPOCH]
    saves = positional("SAVES", path, line.positionals[0]) if line.positionals else None
    attempt = b"" if saves else attempt_name(line)

    prepared = backends.prepare(invocation, long_running=True)
    stop = StopSignal(prepared.deadline.bind)

    def begin() -> WatchLoop:
        opened = prepared.open()
        folder = _saves_folder(opened, saves) if saves else EXECUTIONS + b"/" + attempt
        return watch.on(opened, prepared.deadline, folder, epoch, links=bool(saves))

    watching = prepared.deadline.run(begin)
    stop.end_at_second()
    watching.run(stop, "stopped by a signal")
    return EXIT_OK


def _saves_folder(opened: OpenRoot, saves: bytes) -> bytes:
    """The folder SAVES, relative to the root. Raises ConfigError."""
    folder = opened.locate(saves)
    for reserved in RESERVED:
        if folder and overlap(folder, reserved):
            raise ConfigError(f"{to_text(reserved)}/ is reserved for publish and cannot be SAVES: {to_text(saves)}")
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
        "It recognises these saves:",
        *((name, ", ".join(framework.forms)) for name, framework in FRAMEWORKS.items()),
        "and with -framework marker whatever -folder and -marker describe. docs/frameworks.md says when each is",
        "complete.",
    ),
    (
        CHECKPOINT,
        *FRAMEWORK_FLAGS,
        INTERVAL,
        EPOCH,
        ATTEMPT,
        VERIFY,
        SYNC,
        KEEP,
        KEEP_EVERY,
        CREDS,
        PROXY,
        SCAN_TIMEOUT,
    ),
    "publish watch -checkpoint /data/run-7 -framework hf -epoch 4 -attempt try-4 &",
    positionals=("[SAVES]",),
    success="a signal told it to stop, and the final scan was clean",
)
