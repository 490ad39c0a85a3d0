"""The saves that an earlier execution published and that lie where this one writes its own (watch.9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from publish.domain.candidate import Candidate
from publish.domain.ports import Store

Versions = tuple[Mapping[bytes, str], ...]


class InheritedSaves:
    """Tells whether this execution has written such a save anew: every file that completes it has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._versions: dict[bytes, Versions] = {}

    def remember(self, candidates: Iterable[Candidate]) -> None:
        """What these saves look like before this execution writes."""
        for candidate in candidates:
            self._versions[candidate.save.path] = self._look(candidate)

    def holds(self, candidate: Candidate) -> bool:
        """Whether the save is still the earlier execution's."""
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
