"""Publishes the saves of one execution as they become complete, in step order, each once."""

from __future__ import annotations

from publish.domain.entry import Entry, to_text
from publish.domain.errors import FormatError
from publish.domain.frameworks import Framework, Save
from publish.domain.ports import Namespace, Report
from publish.domain.publish import append, check
from publish.domain.retrying_store import Requests, entries, pages
from publish.domain.root import Root


class Watch:
    """One folder of saves, looked at again and again.

    A save that is in the log, or that this watch published, is not read again (watch.7).
    """

    def __init__(
        self, ask: Requests, report: Report, root: Root, framework: Framework, saves: bytes, epoch: int
    ) -> None:
        """`saves`: the folder that holds the saves, relative to the root, b"" for the root."""
        self._ask = ask
        self._report = report
        self._root = root
        self._framework = framework
        self._saves = saves
        self._epoch = epoch
        self._done: set[Entry] = set()

    def begin(self) -> None:
        """Reads the log, once. Raises FormatError for a name in it that does not parse (L4).

        Raises ConfigError where no save in this folder could ever be published (L8).
        """
        check(self._ask, Entry.of(self._epoch, 0, self._inside() + self._framework.shortest))
        self._done.update(entry for entry in entries(self._ask, Namespace.PUB) if entry.epoch == self._epoch)

    def scan(self) -> None:
        """Publishes every complete save that is not yet published.

        Raises at the first fault, when all lower steps are published.
        """
        for save in self._found():
            entry = Entry.of(self._epoch, save.step, save.path)
            if entry not in self._done and self._is_complete(save):
                check(self._ask, entry)
                append(self._ask, self._report, entry)
                self._done.add(entry)

    def _found(self) -> list[Save]:
        """The saves' folders that are there, in step order."""
        inside = self._inside()
        names = pages(
            self._ask,
            f"list {to_text(inside) or 'the root'}",
            lambda store, after: store.list_directories(self._saves, after),
        )
        steps = ((self._framework.step_of(name), name) for name in names)
        return sorted(Save(step, inside + name) for step, name in steps if step is not None)

    def _inside(self) -> bytes:
        return self._saves + b"/" if self._saves else b""

    def _is_complete(self, save: Save) -> bool:
        try:
            return self._framework.is_complete(self._ask, save)
        except FormatError as fault:
            raise FormatError(f"{to_text(self._root.render(save.path))}/{fault}") from fault
