"""What a command line says of a watch, for the verbs that have one: `watch` and `run`."""

from __future__ import annotations

from functools import partial
from time import monotonic

from publish.cli.framework_flags import chosen_framework
from publish.cli.goflag import Flag, duration, positive
from publish.cli.messages import describe
from publish.cli.verbs.common import KEEP_EVERY, SYNC, TIMEOUT, Invocation
from publish.cli.watch_loop import WatchLoop
from publish.domain.errors import PublishError, UsageError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.recognition import Recogniser
from publish.domain.watch import Watcher, check_execution_folder, check_saves_folder
from publish.domain.watch_notes import WatchNotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from publish.cli.backends.backend import OpenRoot
    from publish.cli.deadline import Deadline

INTERVAL = Flag("interval", duration, "DURATION", "how long to wait between two scans", default="10s")
SCAN_TIMEOUT = TIMEOUT.described_as("how long one scan may take on an S3 root, or the final scan on a directory")
KEEP = Flag(
    "keep",
    positive,
    "N",
    "prune after a scan that published something, and keep the N latest publications; default: no pruning",
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

    def check(self, opened: OpenRoot, folder: bytes) -> None:
        """Raises ConfigError if no save in `folder`, relative to the root, could be published."""
        check_saves_folder(opened.store, self._framework, folder)

    def on(
        self, opened: OpenRoot, deadline: Deadline, folder: bytes, epoch: int, advice: str = "", *, links: bool = False
    ) -> WatchLoop:
        """The watch of `folder`, relative to the root. Raises ConfigError.

        `links`: as in `Watcher`. `advice`: as in `WatchNotes`.
        """
        if not links:
            check_execution_folder(opened.store, opened.root, folder)
        find_flaw = _flaw_finder(opened) if self._verify else lambda _path: ""
        watcher = Watcher(
            opened.store,
            opened.reporter,
            opened.root,
            self._framework,
            folder,
            epoch,
            find_flaw,
            sync=self._sync,
            links=links,
        )
        recogniser = Recogniser(opened.store, opened.root, FRAMEWORKS, self._framework, folder)
        notes = WatchNotes(opened.reporter, recogniser, opened.root, self._framework, folder, monotonic(), advice)
        notes.begin(epoch, self._interval)
        prune = None if self._keep is None else partial(self._prune, opened, self._keep)
        return WatchLoop(watcher, notes, opened, deadline, self._interval, prune)

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


def _flaw_finder(opened: OpenRoot) -> Callable[[bytes], str]:
    from publish.cli.verdicts import describe_faults  # start-up: only with -verify
    from publish.domain.verify import RepeatedChecker

    checker = RepeatedChecker(opened.store, opened.parallel)

    def find_flaw(path: bytes) -> str:
        verdict = checker.check(path)
        return "" if verdict.is_whole else describe_faults(verdict)

    return find_flaw
