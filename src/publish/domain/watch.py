"""Publishes the saves of one execution as they become complete, in step order, each once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from publish.domain.candidate import Candidate, Completeness, find
from publish.domain.entry import EXECUTIONS, Entry, join, to_text
from publish.domain.errors import ConfigError, FormatError, NotDurable
from publish.domain.layout import Framework, Save
from publish.domain.light_typing import NamedTuple
from publish.domain.listing import entries
from publish.domain.lost_saves import LostSaves
from publish.domain.ports import Namespace, Store
from publish.domain.publish import SaveIsBeingRemoved, check_publishable, publish_entry
from publish.domain.report import Report
from publish.domain.root import Root
from publish.domain.settling import Settling
from publish.domain.unchanged_saves import UnchangedSaves

SETTLING = "has changed since the scan before"


class Incomplete(NamedTuple):
    """A save that is not complete, and why not."""

    save: Save
    reason: str


class Scan(NamedTuple):
    """What a scan saw."""

    saves: int
    """How many saves there are, complete or not."""
    incomplete: list[Incomplete]
    """In step order."""


def check_saves_folder(store: Store, framework: Framework, folder: bytes) -> None:
    """Raises ConfigError if no save of the framework could be published from there (layout.8). Sends no request."""
    check_publishable(store, Entry.of(0, 0, join(folder, framework.shortest)))


def check_execution_folder(store: Store, root: Root, folder: bytes) -> None:
    """Raises ConfigError if a symbolic link leads to the folder where an execution saves (watch.13).

    Another user who may write to `exec/` could lead the watch to saves of their own. `exec` itself may be a link, to
    another filesystem perhaps, that belongs to the user running, to root or to the owner of the root.
    """
    names = folder.split(b"/")
    for depth in range(1, len(names) + 1):
        path = b"/".join(names[:depth])
        if store.is_link(path) and not (path == EXECUTIONS and store.owner_is_trusted(path, b"")):
            raise ConfigError(
                "the folder of this execution is reached through a symbolic link (if that is meant, start publish "
                f"watch with SAVES): {to_text(root.render(path))}"
            )


class Watcher:
    """Scans one folder of saves repeatedly.

    A save that is in the log, or that this watcher published, is not read again while it is there (watch.7, watch.12).
    """

    def __init__(
        self,
        store: Store,
        report: Report,
        root: Root,
        framework: Framework,
        saves: bytes,
        epoch: int,
        find_flaw: Callable[[bytes], str] = lambda _path: "",
        *,
        sync: bool = True,
        links: bool = True,
    ) -> None:
        """`saves`: the folder that holds the saves, relative to the root, b"" for the root.

        `find_flaw(path)`: why a save that the framework calls complete is not whole; "": it is (verify.3).
        `sync`: make the data of a save durable before it is published (data.1).
        `links`: whether `saves` may be reached through symbolic links, which only the user can decide (watch.13).
        Raises ConfigError for a framework whose complete saves cannot be recognised on such a root.
        """
        self._store = store
        self._report = report
        self._root = root
        self._layouts = framework.layouts_on(root.where)
        self._framework = framework
        self._saves = saves
        self._epoch = epoch
        self._find_flaw = find_flaw
        self._sync = sync
        self._links = links
        self._distrusted: set[bytes] = set()
        self._published: set[Entry] = set()
        self.published = 0
        """How many saves it has published, or found published when it came to it."""
        self._being_removed: set[Entry] = set()
        self._inherited = UnchangedSaves(store)
        self._settling = Settling(store)
        self._lost = LostSaves(store)

    @property
    def is_settling(self) -> bool:
        """Whether a save may be found complete by scanning once more, a moment later."""
        return self._settling.is_waiting

    def begin(self) -> None:
        """Reads the log, once. Raises FormatError for a name in it that does not parse (layout.4).

        Raises ConfigError if no save in this folder could ever be published (layout.8).
        """
        check_saves_folder(self._store, self._framework, self._saves)
        self._check_links()
        log = list(entries(self._store, Namespace.PUB))
        self._published.update(entry for entry in log if entry.epoch == self._epoch)
        # A publisher that was killed may have created an entry without making it durable (data.5).
        self._store.sync_entries(Namespace.PUB, [entry.name for entry in sorted(self._published)])
        self._warn_if_superseded(max((entry.epoch for entry in log), default=0))
        self._skip_inherited({entry.path: entry.epoch for entry in sorted(log) if entry.epoch < self._epoch})

    def _warn_if_superseded(self, newest: int) -> None:
        """What this watch publishes has a lower epoch, so it never becomes the latest (layout.6)."""
        if newest > self._epoch:
            self._report.note(
                f"a newer execution has published, so no start resumes from what this one publishes "
                f"(raise DISPATCH_EPOCH, unless this is the older one): epoch {self._epoch}, the log has {newest}"
            )

    def _skip_inherited(self, epochs: Mapping[bytes, int]) -> None:
        """Saves of earlier executions count once they are written anew (watch.9)."""
        if not epochs:
            return
        own = {entry.path for entry in self._published}
        inherited = [
            candidate
            for candidate in find(self._store, self._layouts, self._saves)
            if candidate.save.path in epochs and candidate.save.path not in own
        ]
        self._inherited.remember(inherited)
        if inherited:
            newest, count = inherited[-1].save.path, len(inherited)
            self._report.note(
                f"skipping {count} {'save' if count == 1 else 'saves'} of earlier executions until written anew, "
                f"the newest is {to_text(self._root.render(newest))} (epoch {epochs[newest]})"
            )

    def scan(self) -> Scan:
        """Publishes every complete save that is not yet published. Publishes all lower steps before it raises.

        Raises NotDurable last, for each save of which a sync failed, in this scan or in an earlier one.
        """
        self._check_links()
        found = find(self._store, self._layouts, self._saves)
        self._published &= {self._entry(candidate.save) for candidate in found}
        incomplete = []
        for candidate in found:
            entry = self._entry(candidate.save)
            if entry in self._published or self._inherited.holds(candidate) or self._lost.holds(candidate):
                continue
            if not self._check_owner(candidate):
                continue
            reason = self._why_incomplete(candidate)
            if not reason and self._sync:
                # Looked at again: what was complete may have been written anew meanwhile (data.1).
                check_publishable(self._store, entry)
                try:
                    self._store.sync_save(entry.path)
                except NotDurable as fault:
                    self._lost.add(candidate, fault)
                    continue
                reason = self._examine(candidate).reason or self._find_flaw(entry.path)
            if reason:
                incomplete.append(Incomplete(candidate.save, reason))
                continue
            check_publishable(self._store, entry)
            self._publish(entry)
        self._lost.check({candidate.save.path for candidate in found})
        return Scan(len(found), incomplete)

    def _check_links(self) -> None:
        if not self._links:
            check_execution_folder(self._store, self._root, self._saves)

    def _check_owner(self, candidate: Candidate) -> bool:
        """Returns whether the save and its markers belong to the user running, root or the owner of SAVES (watch.13).

        To many trainers a checkpoint is code that they run.
        """
        path = candidate.save.path
        paths = [path, *(path + b"/" + marker for layout in candidate.layouts for marker in layout.markers)]
        untrusted = [one for one in paths if not self._store.owner_is_trusted(one, self._saves)]
        if untrusted and path not in self._distrusted:
            self._distrusted.add(path)
            self._report.note(
                f"skipping a save that belongs to another user: {to_text(self._root.render(untrusted[0]))}"
            )
        return not untrusted

    def _publish(self, entry: Entry) -> None:
        try:
            publish_entry(self._store, self._report, entry)
        except SaveIsBeingRemoved as fault:
            if entry not in self._being_removed:
                self._report.not_published(entry, fault)
            self._being_removed.add(entry)
        else:
            self._published.add(entry)
            self.published += 1

    def _entry(self, save: Save) -> Entry:
        return Entry.of(self._epoch, save.step, save.path)

    def _why_incomplete(self, candidate: Candidate) -> str:
        layout, reason = self._examine(candidate)
        if layout is None:
            self._settling.forget(candidate.save)
        elif layout.settle and not self._settling.observe(candidate.save):
            return SETTLING
        return reason or self._find_flaw(candidate.save.path)

    def _examine(self, candidate: Candidate) -> Completeness:
        try:
            return candidate.examine(self._store)
        except FormatError as fault:
            raise FormatError(f"{to_text(self._root.render(candidate.save.path))}/{fault}") from fault
