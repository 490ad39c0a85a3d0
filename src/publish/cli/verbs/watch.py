"""`publish watch`: publish saves as training completes them."""

from __future__ import annotations

from functools import partial
from textwrap import wrap
from time import monotonic, sleep

from publish.cli import backends
from publish.cli.framework_flags import FRAMEWORK_FLAGS, chosen_framework
from publish.cli.goflag import Flag, duration, path
from publish.cli.signals import StopSignal
from publish.cli.verbs.common import (
    ATTEMPT,
    CHECKPOINT,
    CREDS,
    EPOCH,
    EXIT_OK,
    PROXY,
    SYNC,
    TIMEOUT,
    VERIFY,
    Invocation,
    Verb,
    attempt_name,
    positional,
)
from publish.domain.entry import RESERVED, overlap, to_text
from publish.domain.errors import ConfigError, PublishError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.recognition import Recogniser
from publish.domain.watch import Watcher
from publish.domain.watch_notes import WatchNotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from publish.cli.backends import OpenRoot
    from publish.cli.deadline import Deadline


INTERVAL = Flag("interval", duration, "DURATION", "how long to wait between two scans", default="10s")
SCAN_TIMEOUT = Flag(
    TIMEOUT.name,
    duration,
    TIMEOUT.metavar,
    "how long one scan may take on an S3 root, or the last scan on a directory",
    default=TIMEOUT.default,
)


# In seconds: how long after the last scan a save that still changes gets another look.
_LAST_SETTLE = 2.0
_HELP_WIDTH = 100


def run(invocation: Invocation) -> int:
    """Publishes saves until a signal asks it to stop; then finishes its scan and scans once more (watch.6)."""
    line = invocation.line
    framework, interval, epoch, verify = chosen_framework(line), line[INTERVAL], line[EPOCH], line[VERIFY]
    saves = positional("SAVES", path, line.positionals[0]) if line.positionals else None
    attempt = b"" if saves else attempt_name(line)

    stop = StopSignal()
    prepared = backends.prepare(invocation, long_running=True)
    deadline = prepared.deadline
    opened = deadline.run(prepared.open)
    folder = _saves_folder(opened, saves or opened.root.render(b"exec/" + attempt))
    if not saves and opened.store.real_path(folder) not in (folder, None):
        raise ConfigError(
            "the folder of this execution is reached through a symbolic link (give SAVES if that is meant): "
            f"{to_text(opened.root.render(folder))}"
        )
    find_flaw = _flaw_finder(opened) if verify else lambda _path: ""
    watcher = Watcher(opened.store, opened.reporter, opened.root, framework, folder, epoch, find_flaw, sync=line[SYNC])
    recogniser = Recogniser(opened.store, opened.root, FRAMEWORKS, framework, folder)
    notes = WatchNotes(opened.reporter, recogniser, opened.root, framework, folder, monotonic())
    notes.begin(epoch, interval)
    try:
        _watch(watcher, notes, opened, deadline, stop, interval)
    except PublishError:
        notes.failed(watcher.published)
        raise
    return EXIT_OK


def _watch(
    watcher: Watcher, notes: WatchNotes, opened: OpenRoot, deadline: Deadline, stop: StopSignal, interval: float
) -> None:
    deadline.run(watcher.begin)
    while True:
        is_last = stop.requested
        if is_last:
            deadline.bind()
        began = monotonic()
        deadline.restart()
        opened.store.restart()
        scan = deadline.run(watcher.scan)
        if is_last:
            if watcher.is_settling:
                sleep(min(interval, _LAST_SETTLE))
                scan = deadline.run(watcher.scan)
            deadline.run(partial(notes.end, scan, "stopped by a signal", watcher.published))
            return
        deadline.run(partial(notes.after_scan, scan, monotonic()))
        stop.wait(began + interval - monotonic())


def _flaw_finder(opened: OpenRoot) -> Callable[[bytes], str]:
    from publish.cli.verdicts import describe_faults  # start-up: only with -verify
    from publish.domain.verify import RepeatedChecker

    checker = RepeatedChecker(opened.store, opened.parallel)

    def find_flaw(path: bytes) -> str:
        verdict = checker.check(path)
        return "" if verdict.is_whole else describe_faults(verdict)

    return find_flaw


def _saves_folder(opened: OpenRoot, saves: bytes) -> bytes:
    """The folder SAVES, relative to the root. Raises ConfigError."""
    folder = opened.locate(saves)
    for reserved in RESERVED:
        if folder and overlap(folder, reserved):
            raise ConfigError(f"{to_text(reserved)}/ is reserved for publish and cannot be SAVES: {to_text(saves)}")
    return folder


def _rows() -> list[str]:
    """A line for each framework of the table: its name and how its saves are called."""
    width = max(map(len, FRAMEWORKS))
    return [
        line
        for name, framework in FRAMEWORKS.items()
        for line in wrap(
            ", ".join(framework.forms),
            _HELP_WIDTH,
            initial_indent=f"  {name:{width}}  ",
            subsequent_indent=" " * (width + 4),
        )
    ]


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
        *_rows(),
        "and with -framework marker whatever -folder and -marker describe. docs/frameworks.md says when each is",
        "complete.",
    ),
    (CHECKPOINT, *FRAMEWORK_FLAGS, INTERVAL, EPOCH, ATTEMPT, VERIFY, SYNC, CREDS, PROXY, SCAN_TIMEOUT),
    "publish watch -checkpoint /data/run-7 -framework hf -epoch 4 -attempt try-4 &",
    positionals=("[SAVES]",),
    success="a signal told it to stop, and the last scan was clean",
)
