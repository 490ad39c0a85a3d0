"""The watch of `run`: on a thread of its own, beside COMMAND, with a final scan once COMMAND has ended."""

from __future__ import annotations

import threading

from publish.cli.last_resort import GRACE_SECONDS, LastResort
from publish.cli.messages import describe, describe_internal_error
from publish.cli.threads import start_thread
from publish.cli.verbs.common import EXIT_FAILURE
from publish.cli.watch_options import SCAN_TIMEOUT
from publish.domain.errors import NotDurable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.supervisor import Supervisor
    from publish.cli.verbs.common import Invocation
    from publish.cli.watch_loop import WatchLoop


class WatchBeside:
    """A watch whose thread is there before COMMAND starts, and that begins to scan when it has."""

    def __init__(self, invocation: Invocation, watching: WatchLoop, *, is_strict: bool) -> None:
        """`is_strict`: end COMMAND when a scan fails. Raises CannotStartThread."""
        self._output = invocation.output
        self._invocation = invocation
        self._watching = watching
        self._is_strict = is_strict
        self._supervisor: Supervisor
        self._started = threading.Event()
        self._ended = threading.Event()
        self._is_over = threading.Event()
        self._is_published = False
        self._has_ended_command = False
        self._last_fault: list[str] = []
        start_thread(self._watch)

    @property
    def requested(self) -> bool:
        """Whether COMMAND has ended, so that the next scan is the last."""
        return self._ended.is_set()

    def wait(self, seconds: float) -> None:
        """Returns when `seconds` have passed or COMMAND has ended."""
        self._ended.wait(max(seconds, 0))

    def status(self, supervisor: Supervisor) -> int:
        """Waits for COMMAND, which has started, and then for the final scan; returns the exit status."""
        self._supervisor = supervisor
        self._started.set()
        status = supervisor.wait()
        self._watching.bind()
        self._ended.set()
        limit = self._invocation.line[SCAN_TIMEOUT]
        LastResort(limit + 1 + GRACE_SECONDS)
        # A moment more than the scan itself has: its own message says where it was.
        if not supervisor.wait_after(self._is_over.is_set, limit + 1):
            self._output.log(f"run: the final scan is out of time (-timeout {limit:g}s)")
        if self._has_ended_command:
            return EXIT_FAILURE
        return status if status or self._is_published else EXIT_FAILURE

    def _watch(self) -> None:
        self._started.wait()
        try:
            self._is_published = self._watching.run(self, "COMMAND has ended", self._on_fault)
        except Exception as error:  # noqa: BLE001  (unforeseen; the training goes on)
            self._output.log(describe_internal_error(error))
        self._is_over.set()
        self._supervisor.wake()

    def _on_fault(self, fault: Exception) -> None:
        """Reports what a scan raised, once as long as it stays the same (run.5)."""
        lines = describe(self._invocation, fault)
        if lines != self._last_fault or self.requested:
            for text in lines:
                self._output.log(text)
            self._output.log(f"run: {self._consequence(fault)}")
        self._last_fault = lines
        if self._is_strict and not self.requested:
            self._has_ended_command = True
            self._supervisor.end()

    def _consequence(self, fault: Exception) -> str:
        if self.requested and isinstance(fault, NotDurable):
            return "the last scan failed"
        if self.requested:
            return "the final scan failed; run publish watch to publish what COMMAND saved"
        return "a scan failed, ending COMMAND (-strict)" if self._is_strict else "a scan failed, trying again"
