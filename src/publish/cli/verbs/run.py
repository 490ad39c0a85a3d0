"""`publish run`: begin, the command with a watch beside it, a final scan."""

from __future__ import annotations

import threading

from publish.cli import backends
from publish.cli.beginning import FROM, OWN_ATTEMPT, OWN_EPOCH, beginning, variables
from publish.cli.framework_flags import FRAMEWORK_FLAGS
from publish.cli.goflag import Flag, boolean, path, unsigned
from publish.cli.last_resort import GRACE_SECONDS, LastResort
from publish.cli.messages import describe, log_internal_error
from publish.cli.supervisor import CannotStart, Supervisor
from publish.cli.verbs.common import (
    ATTEMPT,
    CHECKPOINT,
    CREDS,
    EXIT_FAILURE,
    KEEP_EVERY,
    PROXY,
    SYNC,
    VERIFY,
    Invocation,
    Verb,
)
from publish.cli.watch_options import INTERVAL, KEEP, SCAN_TIMEOUT, WatchOptions
from publish.domain.entry import has_control_characters, to_text
from publish.domain.errors import NotDurable, PublishError, UsageError
from publish.domain.executions import check_not_published

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from publish.cli.watch_loop import WatchLoop
    from publish.domain.executions import Execution
    from publish.domain.root import Root

_HINT = "give $DISPATCH_SAVES to the training as the folder to save in, or name a folder in it with -saves"


def _folder_inside(value: str) -> bytes:
    folder = path(value).rstrip(b"/")
    if has_control_characters(folder) or any(part in (b"", b".", b"..") for part in folder.split(b"/")):
        raise UsageError(f"not a folder inside $DISPATCH_SAVES (no leading slash, no . or ..): {value}")
    return folder


SAVES = Flag(
    "saves", _folder_inside, "DIR", "watch this folder inside $DISPATCH_SAVES; default: $DISPATCH_SAVES itself"
)
NODE = Flag("node", unsigned, "K", "this node's number; only node 0 watches and prunes", default="0")
VERIFY_FIRST = Flag(VERIFY.name, boolean, "", VERIFY.about, default="true")
STRICT = Flag("strict", boolean, "", "end COMMAND if a scan fails", default="false")


def run(invocation: Invocation) -> int:
    """Returns COMMAND's exit status, or 1 if COMMAND succeeded and its saves are not published. Raises PublishError."""
    line = invocation.line
    if line.every(NODE) and line.get(ATTEMPT) is None:
        raise UsageError(
            f"-{NODE.name} needs an attempt that all nodes share: use -{ATTEMPT.name} or set {ATTEMPT.variable}"
        )
    verify = line[VERIFY_FIRST]
    watch, begin_on = WatchOptions(invocation, verify=verify), beginning(invocation, verify=verify)
    command = [path(word) for word in line.positionals]
    invocation.output.log_results()
    # Before credentials are read: from then on /proc tells an ordinary user less of this process.
    given = _original(invocation.env)

    prepared = backends.prepare(invocation, long_running=True)
    opened = prepared.deadline.run(prepared.open)
    execution = prepared.deadline.run(lambda: opened.naming_saves(lambda: begin_on(opened)))
    _log_beginning(invocation, opened.root, execution)
    env = {**given, **variables(opened.root, execution)}
    inside = line.get(SAVES)
    folder = execution.folder if inside is None else execution.folder + b"/" + inside
    watch.check(opened, folder)
    watching = None
    if line[NODE] == 0:
        prepared.deadline.run(lambda: check_not_published(opened.store, execution))
        watching = watch.on(opened, prepared.deadline, folder, execution.epoch, _HINT)
    try:
        supervisor = opened.start(lambda: Supervisor(command, env))
    except CannotStart as refusal:
        invocation.output.log(f"cannot start COMMAND ({refusal}): {line.positionals[0]}")
        return refusal.status
    if watching is None:
        return supervisor.wait()
    return _Beside(invocation, supervisor, watching).status()


def _log_beginning(invocation: Invocation, root: Root, execution: Execution) -> None:
    resume = execution.resume
    origin = "starting from step 0" if resume is None else f"resuming from {to_text(root.render(resume.path))}"
    invocation.output.log(f"run: epoch {execution.epoch}, attempt {to_text(execution.attempt)}, {origin}")


class _Beside:
    """COMMAND, and a watch beside it on a thread of its own."""

    def __init__(self, invocation: Invocation, supervisor: Supervisor, watching: WatchLoop) -> None:
        self._invocation = invocation
        self._supervisor = supervisor
        self._watching = watching
        self._is_strict = invocation.line[STRICT]
        self._ended = threading.Event()
        self._is_over = threading.Event()
        self._is_published = False
        self._has_failed = False
        self._last_fault: list[str] = []

    @property
    def requested(self) -> bool:
        """Whether COMMAND has ended, so that the next scan is the last."""
        return self._ended.is_set()

    def wait(self, seconds: float) -> None:
        """Returns when `seconds` have passed or COMMAND has ended."""
        self._ended.wait(max(seconds, 0))

    def status(self) -> int:
        """Waits for COMMAND and then for the final scan; returns the exit status."""
        threading.Thread(target=self._watch, daemon=True).start()
        status = self._supervisor.wait()
        self._watching.bind()
        self._ended.set()
        limit = self._invocation.line[SCAN_TIMEOUT]
        LastResort(limit + 1 + GRACE_SECONDS)
        # A moment more than the scan itself has: its own message says where it was.
        if not self._supervisor.wait_after(self._is_over.is_set, limit + 1):
            self._invocation.output.log(f"run: the final scan is out of time (-timeout {limit:g}s)")
        if self._has_failed and self._is_strict:
            return EXIT_FAILURE
        return status if status or self._is_published else EXIT_FAILURE

    def _watch(self) -> None:
        try:
            self._is_published = self._watching.run(self, "COMMAND has ended", self._on_fault)
        except Exception as error:  # noqa: BLE001  (unforeseen; the training goes on)
            log_internal_error(self._invocation.output, error)
        self._is_over.set()
        self._supervisor.wake()

    def _on_fault(self, fault: PublishError) -> None:
        """Reports what a scan raised, once as long as it stays the same (run.5)."""
        lines = describe(self._invocation, fault)
        if lines != self._last_fault or self.requested:
            for text in lines:
                self._invocation.output.log(text)
            self._invocation.output.log(f"run: {self._consequence(fault)}")
        self._last_fault = lines
        self._has_failed = True
        if self._is_strict and not self.requested:
            self._supervisor.end()

    def _consequence(self, fault: PublishError) -> str:
        if self.requested and isinstance(fault, NotDurable):
            return "the last scan failed"
        if self.requested:
            return "the final scan failed; run publish watch to publish what COMMAND saved"
        return "a scan failed, ending COMMAND (-strict)" if self._is_strict else "a scan failed, trying again"


def _original(env: Mapping[str, str]) -> dict[bytes, bytes]:
    """The environment that publish was started with, byte by byte (run.2).

    Python sets LC_CTYPE in its own process where the locale is C (PEP 538).
    """
    original = {path(name): path(value) for name, value in env.items()}
    if b"LC_CTYPE" in original and not _was_given(b"LC_CTYPE"):
        del original[b"LC_CTYPE"]
    return original


def _was_given(name: bytes) -> bool:
    """Whether this process was started with the variable (proc(5))."""
    try:
        with open("/proc/self/environ", "rb") as block:
            return any(line.startswith(name + b"=") for line in block.read().split(b"\0"))
    except OSError:
        return True


VERB = Verb(
    "run",
    run,
    "run a training: begin, watch beside it, publish what it saved",
    (
        "Begins an execution (publish help begin), starts COMMAND with DISPATCH_EPOCH, DISPATCH_ATTEMPT,",
        "DISPATCH_RESUME (the save to resume from; empty: start from step 0) and DISPATCH_SAVES (where to save) in",
        "its environment, watches that folder (publish help watch) and scans once more when COMMAND has ended.",
        "Signals are passed on to COMMAND. All that publish says goes to stderr. A scan that fails does not stop",
        "COMMAND: it is reported and tried again.",
        "",
        "The exit status is that of COMMAND, or 128 plus the number of the signal that ended it; 126 or 127 if COMMAND",
        "cannot be started; 1 if COMMAND succeeded and the final scan failed.",
        "",
        "On several nodes, give all of them the same attempt and each its number with -node. Give each start of a job",
        "an attempt of its own, or none: an attempt that has published is not started again.",
    ),
    (
        CHECKPOINT,
        *FRAMEWORK_FLAGS,
        SAVES,
        OWN_ATTEMPT,
        OWN_EPOCH,
        FROM,
        VERIFY_FIRST,
        SYNC,
        INTERVAL,
        KEEP,
        KEEP_EVERY,
        NODE,
        STRICT,
        CREDS,
        PROXY,
        SCAN_TIMEOUT,
    ),
    "publish run -checkpoint /data/run-7 -framework hf -- python train.py",
    positionals=("-- COMMAND", "[ARG...]"),
    success="COMMAND succeeded, and what it saved is published",
    statuses=(
        ("126, 127", "COMMAND cannot be started, or is not found"),
        ("128+N", "signal N ended COMMAND"),
        ("others", "COMMAND's own, also 1 and 2"),
    ),
)
