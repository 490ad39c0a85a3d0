"""Candidates: files and folders that have the name of a save, complete or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from publish.domain.entry import join
from publish.domain.layout import Layout, Save
from publish.domain.light_typing import NamedTuple
from publish.domain.listing import pages
from publish.domain.ports import Page, Store


class Completeness(NamedTuple):
    """Whether a save is complete."""

    layout: Layout | None
    """The layout by which it is, if it has settled where that asks for it; None: it is not complete."""
    reason: str
    """Why it is not, for people."""


class Candidate(NamedTuple):
    """A save, and the layouts that its name fits."""

    save: Save
    layouts: Sequence[Layout]

    def examine(self, store: Store) -> Completeness:
        """Whether it is complete by one of the layouts; if not, why not by the first.

        Raises FormatError, as `completeness.why_incomplete` does.
        """
        from publish.domain.completeness import why_incomplete  # start-up: a watch that finds no save needs none

        reasons = []
        for layout in self.layouts:
            reason = why_incomplete(store, layout, self.save)
            if reason is None:
                return Completeness(layout, "")
            reasons.append(reason)
        return Completeness(None, reasons[0])


def find(store: Store, layouts: Sequence[Layout], folder: bytes) -> list[Candidate]:
    """The saves directly in `folder`, in step order; of one step, by name."""
    return sorted(_find(store, layouts, folder), key=lambda candidate: candidate.save)


def _find(store: Store, layouts: Sequence[Layout], folder: bytes) -> Iterator[Candidate]:
    kinds = ((False, store.list_directories), (True, store.list_files_in))
    for is_file, list_names in kinds:
        of_kind = [layout for layout in layouts if layout.is_file is is_file]
        if of_kind:
            yield from fitting(of_kind, folder, names_in(list_names, folder))


def names_in(list_names: Callable[[bytes, str | None], Page], folder: bytes) -> Iterator[bytes]:
    """What `Store.list_directories` or `Store.list_files_in` gives for a folder, on all pages."""
    return pages(lambda token: list_names(folder, token))


def fitting(layouts: Sequence[Layout], folder: bytes, names: Iterable[bytes]) -> Iterator[Candidate]:
    """The names in `folder` that fit one of the layouts."""
    for name in names:
        steps = [(layout, step) for layout in layouts if (step := layout.step_of(name)) is not None]
        if steps:
            save = Save(steps[0][1], join(folder, name))
            yield Candidate(save, tuple(layout for layout, _ in steps))
