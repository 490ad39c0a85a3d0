"""Whether a save is complete, by a row of the table in `frameworks`.

The files that a complete save has are examined before the ones that it must not have: the latter are
there from before the save begins until after it has ended, so no writer gets in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain

from publish.domain import file_checks
from publish.domain.entry import join, to_text
from publish.domain.errors import FormatError
from publish.domain.layout import ITSELF, Check, Layout, Need, Save, Tracker
from publish.domain.listing import pages, saved_files
from publish.domain.ports import SavedFile, Store
from publish.domain.rank_sets import missing

_TRACKER_BYTES = 4096


def why_incomplete(store: Store, layout: Layout, save: Save) -> str | None:
    """What keeps a save from being complete, for people; None: nothing, but for `layout.settle`.

    Raises FormatError, which names the file in the save and its fault, for a save that can never be complete.
    """
    return next(_Examination(store, layout, save).lacks(), None)


def marker_versions(store: Store, layout: Layout, save: Save) -> dict[bytes, str]:
    """The versions of the files that the save is complete with, as far as they are there."""
    examination = _Examination(store, layout, save)
    names = (name for need in layout.needs for name in examination.names_of(need))
    versions = ((name, store.version(join(save.path, name))) for name in names)
    return {name: version for name, version in versions if version is not None}


class _Examination:
    """One examination of one save, which lists the save at most once."""

    def __init__(self, store: Store, layout: Layout, save: Save) -> None:
        self._store = store
        self._layout = layout
        self._save = save

    def lacks(self) -> Iterator[str]:
        """All that the save lacks, in the order in which it is looked for."""
        tracker = self._layout.tracker
        if tracker is not None and not self._is_named_by(tracker):
            yield f"{to_text(tracker.file)} does not name it"
        for need in self._layout.needs:
            yield from self._lacks_of(need)
        for pattern in self._layout.forbids:
            if self._exists(pattern):
                yield f"{to_text(pattern.replace(b'{}', self._save.name))} is there"

    def _is_named_by(self, tracker: Tracker) -> bool:
        content = (self._store.read(join(self._save.folder, tracker.file), _TRACKER_BYTES) or b"").strip()
        if not content.isdigit():
            return content == self._save.name
        return int(content) == self._save.step or (not tracker.exact and int(content) > self._save.step)

    def _lacks_of(self, need: Need) -> Iterator[str]:
        if need.check is Check.RANKS:
            yield from self._lacks_of_ranks(need.pattern)
            return
        for name in self.names_of(need):
            try:
                lacking = file_checks.why_incomplete(
                    self._store, need, join(self._save.path, name), self._save.step, self._size
                )
            except FormatError as fault:
                raise FormatError(f"{to_text(name)}: {fault}") from fault
            if lacking:
                yield f"{to_text(name or self._save.name)} {lacking}"

    def _lacks_of_ranks(self, pattern: bytes) -> Iterator[str]:
        """What the names of the files that match say is missing."""
        found = self._matching(pattern)
        expected = self._layout.ranks
        if not found:
            yield f"{to_text(pattern)} is not there"
        elif expected is not None and len(found) != expected:
            yield f"{to_text(pattern)} matches {len(found)} files instead of {expected}"
        for lacking in missing(file.path for file in found):
            yield f"{to_text(lacking.file)}: {lacking.why}"
        yield from (f"{to_text(file.path)} is empty" for file in found if file.size <= 0)

    def names_of(self, need: Need) -> list[bytes]:
        """The paths in the save of the files that must pass a check; b"" for the save itself."""
        if need.pattern == ITSELF:
            return [b""]
        if need.each_folder:
            folders = pages(lambda token: self._store.list_directories(self._save.path, token))
            return [folder + need.pattern.removeprefix(b"*") for folder in folders]
        if need.is_literal:
            return [need.pattern]
        # A pattern that matches nothing stands for a file that is not there.
        return [file.path for file in self._matching(need.pattern)] or [need.pattern]

    def _matching(self, pattern: bytes) -> list[SavedFile]:
        return [file for file in self._files if _glob(pattern).fullmatch(file.path)]

    def _size(self, path: bytes) -> int | None:
        return self._sizes.get(path[len(self._save.path) + 1 :])

    @cached_property
    def _sizes(self) -> dict[bytes, int]:
        return {file.path: file.size for file in self._files}

    @cached_property
    def _files(self) -> list[SavedFile]:
        return list(saved_files(self._store, self._save.path))

    def _exists(self, pattern: bytes) -> bool:
        folder = self._save.folder if pattern.startswith(b"../") else self._save.path
        name = pattern.removeprefix(b"../").replace(b"{}", self._save.name)
        if b"*" not in name:
            return self._store.exists(join(folder, name))
        names = pages(lambda token: self._store.list_directories(folder, token))
        files = pages(lambda token: self._store.list_files_in(folder, token))
        return any(_glob(name).fullmatch(other) for other in chain(names, files))


def _glob(pattern: bytes) -> re.Pattern[bytes]:
    """`*` matches anything within one name."""
    return re.compile(b"[^/]*".join(re.escape(part) for part in pattern.split(b"*")), re.DOTALL)
