"""The saves whose data could not be made durable, and which are not published as they are (data.3)."""

from __future__ import annotations

from collections.abc import Collection

from publish.domain.candidate import Candidate
from publish.domain.entry import to_text
from publish.domain.errors import NotDurable, first_with_rest
from publish.domain.ports import Store
from publish.domain.unchanged_saves import UnchangedSaves


class LostSaves:
    """Remembers these saves until they are written anew.

    After a failed fsync(2) Linux may keep the pages as if they were on disk: the save reads well, and the next
    fsync(2) of it succeeds.
    """

    def __init__(self, store: Store) -> None:
        self._unchanged = UnchangedSaves(store)
        self._faults: dict[bytes, NotDurable] = {}

    def add(self, candidate: Candidate, fault: NotDurable) -> None:
        """`fault`: the error of the sync of this save."""
        path = candidate.save.path
        self._unchanged.remember([candidate])
        self._faults[path] = NotDurable(f"{fault}; not published until it is saved anew: {to_text(path)}")

    def holds(self, candidate: Candidate) -> bool:
        """Whether the save is still as it was when its sync failed."""
        if self._unchanged.holds(candidate):
            return True
        self._faults.pop(candidate.save.path, None)
        return False

    def check(self, paths: Collection[bytes]) -> None:
        """Raises NotDurable if any of `paths` is such a save, with a fault for each."""
        faults = [fault for path, fault in self._faults.items() if path in paths]
        if faults:
            raise first_with_rest(faults)
