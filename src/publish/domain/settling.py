"""Whether a save has stopped changing, for the layouts whose files do not tell that they are the last."""

from __future__ import annotations

from publish.domain.layout import Save
from publish.domain.listing import saved_files
from publish.domain.ports import SavedFile, Store


class Settling:
    """Remembers how the scan before saw each save that waits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[Save, tuple[SavedFile, ...]] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a save may be found settled by looking once more."""
        return bool(self._seen)

    def look_again(self, save: Save) -> bool:
        """Returns whether all names, sizes and versions in the save are what they were at the last call for it."""
        files = tuple(sorted(saved_files(self._store, save.path)))
        if self._seen.get(save) == files:
            del self._seen[save]
            return True
        self._seen[save] = files
        return False

    def forget(self, save: Save) -> None:
        """The save is not complete any more."""
        self._seen.pop(save, None)
