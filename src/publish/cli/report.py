"""What a verb did, in the words of the contract: each said when it has happened."""

from __future__ import annotations

from time import monotonic

from publish.cli.output import Output
from publish.domain.entry import Entry, to_text
from publish.domain.errors import PublishError
from publish.domain.root import Root

# A removal shows its progress once it has run so long, in seconds, or is of so many saves;
# and then no more often than this.
_LONG = 2.0
_MANY = 20
_BETWEEN = 0.1


class Words:
    """The report of one verb on one root."""

    def __init__(self, output: Output, root: Root) -> None:
        self._output = output
        self._root = root
        self._began = monotonic()
        self._next = 0.0

    def published(self, entry: Entry) -> None:
        """A publication was made."""
        self._output.answer(b"published " + self._describe(entry))

    def already(self, entry: Entry) -> None:
        """The publication was there."""
        self._output.note("already published: " + to_text(self._describe(entry)))

    def removed(self, path: bytes) -> None:
        """A save was there and is gone."""
        self._output.answer(b"removed " + self._root.render(path))

    def left(self, path: bytes, link: bytes) -> None:
        """A save stays because of a symbolic link."""
        save, way = to_text(self._root.render(path)), to_text(self._root.render(link))
        self._output.note(f"prune: left {save} in place: {way} is a symbolic link")

    def failed(self, path: bytes, fault: PublishError) -> None:
        """A save or an entry could not be removed."""
        self._output.note(f"prune: cannot remove {to_text(self._root.render(path))}: {fault}")

    def progress(self, done: int, total: int) -> None:
        """Shown to whoever watches a long removal, on a terminal only (prune.9)."""
        if not self._output.on_terminal:
            return
        now = monotonic()
        if done >= total:
            self._output.erase()
        elif now >= self._next and (total > _MANY or now - self._began > _LONG):
            self._next = now + _BETWEEN
            self._output.show(f"prune: {done} of {total} saves seen to")

    def _describe(self, entry: Entry) -> bytes:
        return b"%s (epoch %d, step %d, %s)" % (
            entry.name,
            entry.epoch,
            entry.step,
            self._root.render(entry.path),
        )
