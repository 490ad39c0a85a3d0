"""Prints what a verb did, in the words of the contract, as it happens."""

from __future__ import annotations

from time import monotonic

from publish.cli.output import escape
from publish.domain.entry import has_control_characters, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from publish.cli.output import Output
    from publish.domain.entry import Entry
    from publish.domain.errors import PublishError
    from publish.domain.root import Root

# Progress is shown for a removal of more saves than this, or one that has run for this many seconds,
PROGRESS_MIN_SAVES = 20
PROGRESS_MIN_SECONDS = 2.0
# and at most once in this time, in seconds.
PROGRESS_INTERVAL = 0.1


class Reporter:
    """The domain's Report for one verb on one root."""

    def __init__(self, output: Output, root: Root, verb: str) -> None:
        self._output = output
        self._root = root
        # Whatever other verb removes something does so by a prune.
        self._remover = "retract" if verb == "retract" else "prune"
        self._began = monotonic()
        self._next = 0.0

    def published(self, entry: Entry) -> None:
        """A publication was made."""
        self._output.print_result(b"published " + self._describe(entry))

    def already_published(self, entry: Entry) -> None:
        """The publication existed before."""
        self._output.log("already published: " + to_text(self._describe(entry)))

    def note(self, line: str) -> None:
        """Something that the user of a watch should know."""
        self._output.log(f"watch: {line}")

    def not_published(self, entry: Entry, fault: PublishError) -> None:
        """A save cannot be published now."""
        self._output.log(f"watch: not published, trying again at each scan: {fault}: {to_text(self._describe(entry))}")

    def would_remove(self, path: bytes) -> None:
        """A prune would remove this save now."""
        self._output.print_result(b"would remove " + self._printable(path))

    def kept(self, path: bytes, reasons: Sequence[str]) -> None:
        """A prune would keep this save."""
        self._output.log(f"prune: would keep {to_text(self._root.render(path))}: {', '.join(reasons)}")

    def missing(self, path: bytes) -> None:
        """A save is kept, and does not exist."""
        self._output.log(
            f"prune: warning: a kept save is not there (retract it, or restore it): {to_text(self._root.render(path))}"
        )

    def removed_above(self, entry: Entry, highest: int) -> None:
        """A step above every kept one goes."""
        self._output.log(
            f"prune: warning: step {entry.step} of epoch {entry.epoch} goes, although the highest step that stays is "
            f"{highest}: {to_text(self._root.render(entry.path))}"
        )

    def retracted(self, entry: Entry) -> None:
        """A publication was taken back."""
        self._output.print_result(b"retracted " + self._describe(entry))

    def stays(self, path: bytes, reason: str) -> None:
        """A save that was to be removed stays."""
        self._output.log(f"{self._remover}: left {to_text(self._root.render(path))} in place: {reason}")

    def nothing_left(self) -> None:
        """The last publication is gone."""
        self._output.log("warning: no publication is left, so the next execution starts from step 0")

    def removed(self, path: bytes) -> None:
        """A save existed and has been removed."""
        self._output.print_result(b"removed " + self._printable(path))

    def left_behind_link(self, path: bytes, link: bytes) -> None:
        """A save was left in place because `link`, on its path, is a symbolic link."""
        save, symlink = to_text(self._root.render(path)), to_text(self._root.render(link))
        self._output.log(f"{self._remover}: left {save} in place: {symlink} is a symbolic link")

    def left_behind_links(self, saves: int) -> None:
        """Saves were left in place because of links."""
        self._output.log(f"{self._remover}: symbolic links kept {saves} saves in place, so their space is not freed")

    def removal_failed(self, path: bytes, fault: PublishError) -> None:
        """A save or an entry could not be removed."""
        self._output.log(f"{self._remover}: cannot remove {to_text(self._root.render(path))}: {fault}")

    def progress(self, done: int, total: int) -> None:
        """Shown during a long removal, on a terminal only (prune.9)."""
        if not self._output.stderr_isatty:
            return
        now = monotonic()
        if done >= total:
            self._output.clear_progress()
        elif now >= self._next and (total > PROGRESS_MIN_SAVES or now - self._began > PROGRESS_MIN_SECONDS):
            self._next = now + PROGRESS_INTERVAL
            self._output.show_progress(f"{self._remover}: {done}/{total} checkpoints")

    def _describe(self, entry: Entry) -> bytes:
        return b"%s (epoch %d, step %d, %s)" % (
            entry.name,
            entry.epoch,
            entry.step,
            self._printable(entry.path),
        )

    def _printable(self, path: bytes) -> bytes:
        """A save as `resolve` prints it; escaped if it would not stay on its line (layout.8)."""
        save = self._root.render(path)
        return escape(to_text(save)) if has_control_characters(path) else save
