"""Whether a save is structurally whole: whether every file and part that its files refer to is there.

Only structure is looked at: content of the right size counts, whatever it is. A file of a kind that is not
known is not judged, because a false "broken" keeps a job's saves from being published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from publish.domain import dcp_metadata, rank_sets
from publish.domain.file_rules import is_metadata, rule_for
from publish.domain.ports import DANGLING, ParallelMap, Store
from publish.domain.save_files import FileVanished, SaveFiles


class Fault(NamedTuple):
    """What is wrong with a file of a save. `file` is relative to the save; b"": the save itself."""

    file: bytes
    why: str


class Verdict(NamedTuple):
    """What is known about a save."""

    faults: Sequence[Fault]
    """In the order of the files' paths; none: it is whole."""

    unread: Sequence[bytes]
    """Metadata that is too large to be read, and so was not."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.faults


def check_save(store: Store, path: bytes, parallel: ParallelMap) -> Verdict:
    """Judges the save at `path`.

    Raises FormatError or a StoreFault for a file that cannot be read, which is not a verdict.
    """
    return judge(SaveFiles.listed(store, path), parallel)


def judge(save: SaveFiles, parallel: ParallelMap) -> Verdict:
    """Judges a save that is listed."""
    if not save.files:
        return Verdict([Fault(b"", "no file in it" if save.exists() else "not there")], [])

    def check(file: bytes) -> list[Fault]:
        return _check_file(save, file)

    faults = [fault for found in parallel(check, filter(_is_judged, sorted(save.files))) for fault in found]
    faults += [Fault(file, "a link that leads nowhere") for file in save.files if save.size(file) == DANGLING]
    faults += [Fault(file, why) for file, why in rank_sets.missing(save.files)]
    unread = [file for file in save.files if is_metadata(file) and save.size(file) > dcp_metadata.MAX_BYTES]
    return Verdict(sorted(faults), sorted(unread))


def _is_judged(file: bytes) -> bool:
    return rule_for(file) is not None


def _check_file(save: SaveFiles, file: bytes) -> list[Fault]:
    rule = rule_for(file)
    if rule is None or save.size(file) == DANGLING:
        return []
    try:
        return [Fault(file, why) for why in rule(save, file)]
    except FileVanished:
        return [Fault(file, "not there any more")]
