"""`publish watch`: publish saves as training completes them."""

from __future__ import annotations

from functools import partial
from time import monotonic

from publish.cli import backends
from publish.cli.framework_flags import FRAMEWORK_FLAGS, chosen_framework
from publish.cli.goflag import Flag, duration, path, positive
from publish.cli.messages import describe
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
    TIMEOUT,
    VERIFY,
    Invocation,
    Verb,
    attempt_name,
    positional,
)
from publish.cli.watch_loop import WatchLoop
from publish.domain.entry import RESERVED, overlap, to_text
from publish.domain.errors import ConfigError, PublishError, UsageError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.recognition import Recogniser
from publish.domain.watch import Watcher
from publish.domain.watch_notes import WatchNotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from publish.cli.backends.backend import OpenRoot
    from publish.cli.deadline import Deadline


INTERVAL = Flag("interval", duration, "DURATION", "how long to wait between two scans", default="10s")
SCAN_TIMEOUT = Flag(
    TIMEOUT.name,
    duration,
    TIMEOUT.metavar,
    "how long one scan may take on an S3 root, or the last scan on a directory",
    default=TIMEOUT.default,
)


KEEP = Flag(
    "keep",
    positive,
    "N",
    "prune after a scan that published something, and keep the N latest publications",
)


class WatchOptions:
    """What a command line says of a watch. `run` has one, too."""

    def __init__(self, invocation: Invocation, *, verify: bool) -> None:
        """Raises UsageError."""
        line = invocation.line
        self._invocation = invocation
        self._framework = chosen_framework(line)
        self._interval = line[INTERVAL]
        self._verify = verify
        self._sync = line[SYNC]
        self._keep, self._keep_every = line.get(KEEP), line.get(KEEP_EVERY)
        if self._keep is None and self._keep_every is not None:
            raise UsageError(f"-{KEEP_EVERY.name} needs -{KEEP.name}")

    def on(self, opened: OpenRoot, deadline: Deadline, folder: bytes, epoch: int) -> WatchLoop:
        """The watch of `folder`, relative to the root. Raises ConfigError."""
        find_flaw = _flaw_finder(opened) if self._verify else lambda _path: ""
        watcher = Watcher(
            opened.store, opened.reporter, opened.root, self._framework, folder, epoch, find_flaw, sync=self._sync
        )
        recogniser = Recogniser(opened.store, opened.root, FRAMEWORKS, self._framework, folder)
        notes = WatchNotes(opened.reporter, recogniser, opened.root, self._framework, folder, monotonic())
        notes.begin(epoch, self._interval)
        tidy = None if self._keep is None else partial(self._prune, opened, self._keep)
        return WatchLoop(watcher, notes, opened, deadline, self._interval, tidy)

    def _prune(self, opened: OpenRoot, keep: int) -> None:
        """A prune that fails is reported, and the watch goes on (watch.10)."""
        from publish.domain.executions import resumed_by_newest  # start-up: only with -keep
        from publish.domain.prune import Guards, prune
        from publish.domain.retention import Policy

        guards = Guards(partial(resumed_by_newest, opened.store))
        try:
            prune(opened.store, opened.reporter, Policy(keep, self._keep_every), opened.parallel, guards)
        except PublishError as fault:
            for text in describe(self._invocation, fault):
                self._invocation.output.log(f"prune: {text}")


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
        folder = _saves_folder(opened, saves) if saves else execution_folder(opened, attempt)
        return watch.on(opened, prepared.deadline, folder, epoch)

    watching = prepared.deadline.run(begin)
    stop.end_at_second()
    watching.run(stop, "stopped by a signal")
    return EXIT_OK


def _flaw_finder(opened: OpenRoot) -> Callable[[bytes], str]:
    from publish.cli.verdicts import describe_faults  # start-up: only with -verify
    from publish.domain.verify import RepeatedChecker

    checker = RepeatedChecker(opened.store, opened.parallel)

    def find_flaw(path: bytes) -> str:
        verdict = checker.check(path)
        return "" if verdict.is_whole else describe_faults(verdict)

    return find_flaw


def execution_folder(opened: OpenRoot, attempt: bytes) -> bytes:
    """Where an execution saves, relative to the root. Raises ConfigError if a link leads there."""
    folder = b"exec/" + attempt
    if opened.store.real_path(folder) not in (folder, None):
        raise ConfigError(
            "the folder of this execution is reached through a symbolic link (give SAVES if that is meant): "
            f"{to_text(opened.root.render(folder))}"
        )
    return folder


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
    success="a signal told it to stop, and the last scan was clean",
)
