"""Whether a save has stopped changing, for the layouts none of whose files is sure to be the last."""

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
        """Whether another scan may find a save settled."""
        return bool(self._seen)

    def observe(self, save: Save) -> bool:
        """Remembers the files of the save; returns whether they are as at the last call, by name, size and version."""
        files = tuple(sorted(saved_files(self._store, save.path)))
        if self._seen.get(save) == files:
            del self._seen[save]
            return True
        self._seen[save] = files
        return False

    def forget(self, save: Save) -> None:
        """The save is not complete any more."""
        self._seen.pop(save, None)
