"""The saves that are still as they were when they were remembered: no file that completes them is new.

Used for saves of an earlier execution (watch.9) and for those whose sync failed (data.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from publish.domain.candidate import Candidate
from publish.domain.ports import Store

Versions = tuple[Mapping[bytes, str], ...]


class UnchangedSaves:
    """Remembers saves until every file that completes them has been written anew."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._versions: dict[bytes, Versions] = {}

    def remember(self, candidates: Iterable[Candidate]) -> None:
        """Remembers what these saves look like now."""
        for candidate in candidates:
            self._versions[candidate.save.path] = self._look(candidate)

    def holds(self, candidate: Candidate) -> bool:
        """Whether the save was remembered and has not been written anew since."""
        before = self._versions.get(candidate.save.path)
        if before is None:
            return False
        if not any(map(_is_new, before, self._look(candidate))):
            return True
        del self._versions[candidate.save.path]
        return False

    def _look(self, candidate: Candidate) -> Versions:
        from publish.domain.completeness import marker_versions  # start-up: as in `candidate`

        return tuple(marker_versions(self._store, layout, candidate.save) for layout in candidate.layouts)


def _is_new(before: Mapping[bytes, str], now: Mapping[bytes, str]) -> bool:
    return bool(now) and all(before.get(name) != version for name, version in now.items())
