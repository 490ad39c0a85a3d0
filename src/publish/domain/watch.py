"""Publishes the saves of one execution as they become complete, in step order, each once."""

from __future__ import annotations

from publish.domain.entry import Entry, to_text
from publish.domain.errors import FormatError
from publish.domain.frameworks import Framework, Save
from publish.domain.listing import entries, pages
from publish.domain.ports import Namespace, Report, Store
from publish.domain.publish import check_publishable, publish_entry
from publish.domain.root import Root


class Watcher:
    """Scans one folder of saves repeatedly.

    A save that is in the log, or that this watcher published, is not read again (watch.7).
    """

    def __init__(
        self, store: Store, report: Report, root: Root, framework: Framework, saves: bytes, epoch: int
    ) -> None:
        """`saves`: the folder that holds the saves, relative to the root, b"" for the root."""
        self._store = store
        self._report = report
        self._root = root
        self._framework = framework
        self._saves = saves
        self._prefix = saves + b"/" if saves else b""
        self._epoch = epoch
        self._published: set[Entry] = set()

    def begin(self) -> None:
        """Reads the log, once. Raises FormatError for a name in it that does not parse (L4).

        Raises ConfigError if no save in this folder could ever be published (L8).
        """
        check_publishable(self._store, Entry.of(self._epoch, 0, self._prefix + self._framework.shortest))
        self._published.update(entry for entry in entries(self._store, Namespace.PUB) if entry.epoch == self._epoch)

    def scan(self) -> None:
        """Publishes every complete save that is not yet published. Publishes all lower steps before it raises."""
        for save in self._list_saves():
            entry = Entry.of(self._epoch, save.step, save.path)
            if entry not in self._published and self._is_complete(save):
                check_publishable(self._store, entry)
                publish_entry(self._store, self._report, entry)
                self._published.add(entry)

    def _list_saves(self) -> list[Save]:
        """The save folders that exist, in step order."""
        names = pages(lambda token: self._store.list_directories(self._saves, token))
        steps = ((self._framework.step_of(name), name) for name in names)
        return sorted(Save(step, self._prefix + name) for step, name in steps if step is not None)

    def _is_complete(self, save: Save) -> bool:
        try:
            return self._framework.is_complete(self._store, save)
        except FormatError as fault:
            raise FormatError(f"{to_text(self._root.render(save.path))}/{fault}") from fault
