"""The loop of a watch: scan, prune if asked to, wait; and once more when it is told to stop (watch.6, watch.10)."""

from __future__ import annotations

from functools import partial
from time import monotonic, sleep

from publish.domain.light_typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from publish.cli.backends.backend import OpenRoot
    from publish.cli.deadline import Deadline
    from publish.domain.watch import Scan, Watcher
    from publish.domain.watch_notes import WatchNotes

# How long after the final scan a save that still changes gets another look.
_FINAL_SETTLE_SECONDS = 2.0


class Stop(Protocol):
    """Whether the watch is to stop, and a wait that ends when it is."""

    @property
    def requested(self) -> bool:
        """Whether the next scan is the last one."""

    def wait(self, seconds: float) -> None:
        """Returns when `seconds`, which may be negative, have passed; at once when a stop is requested."""


class WatchLoop:
    """A watch on an open root."""

    def __init__(
        self,
        watcher: Watcher,
        notes: WatchNotes,
        opened: OpenRoot,
        deadline: Deadline,
        interval: float,
        prune: Callable[[], None] | None,
    ) -> None:
        """`prune` is called after each scan that published something; None: it is not."""
        self._watcher = watcher
        self._notes = notes
        self._opened = opened
        self._deadline = deadline
        self._interval = interval
        self._prune = prune
        self._has_begun = False

    def bind(self) -> None:
        """The scan under way and the last one together have the time of one scan, from now on (nfs.5)."""
        self._deadline.bind()

    def run(self, stop: Stop, reason: str, on_fault: Callable[[Exception], None] | None = None) -> bool:
        """Scans until a stop is requested, and once more; returns whether the final scan was clean.

        `reason`: what a requested stop means. `on_fault` is told what a scan raised, which is then
        tried again; without it, that ends the watch and is raised.
        """
        while True:
            is_last = stop.requested
            began = monotonic()
            try:
                self._scan(reason, is_last=is_last)
            except Exception as fault:  # of any kind: what has failed once may succeed at the next scan
                if on_fault is None:
                    self._notes.failed(self._watcher.published)
                    raise
                on_fault(fault)
                if is_last or self._deadline.is_over:
                    return False
            else:
                if is_last:
                    return True
            stop.wait(began + self._interval - monotonic())

    def _scan(self, reason: str, *, is_last: bool) -> None:
        self._deadline.restart()
        self._opened.store.restart(self._deadline.started)
        if not self._has_begun:
            self._deadline.run(self._watcher.begin)
            self._has_begun = True
        scan = self._publish()
        if not is_last:
            self._deadline.run(partial(self._notes.after_scan, scan, monotonic()))
            return
        if self._watcher.is_settling:
            sleep(min(self._interval, _FINAL_SETTLE_SECONDS))
            scan = self._publish()
        self._deadline.run(partial(self._notes.end, scan, reason, self._watcher.published))

    def _publish(self) -> Scan:
        before = self._watcher.published
        scan = self._deadline.run(self._watcher.scan)
        if self._prune is not None and self._watcher.published > before:
            self._deadline.run(self._prune)
        return scan
