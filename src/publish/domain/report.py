"""What the domain reports to the user: the port behind the command line's messages."""

from __future__ import annotations

from collections.abc import Sequence

from publish.domain.entry import Entry
from publish.domain.errors import PublishError
from publish.domain.light_typing import Protocol


class Report(Protocol):
    """Receives what a command did, as it happens."""

    def published(self, entry: Entry) -> None:
        """A publication was made."""

    def already_published(self, entry: Entry) -> None:
        """The publication existed before."""

    def note(self, line: str) -> None:
        """Something that the user should know while a command runs; neither an answer nor an error."""

    def not_published(self, entry: Entry, fault: PublishError) -> None:
        """A save cannot be published now; the next scan tries again. Called once for each entry."""

    def would_remove(self, path: bytes) -> None:
        """A prune would remove this save now."""

    def kept(self, path: bytes, reasons: Sequence[str]) -> None:
        """A prune would keep this save, for these reasons."""

    def missing(self, path: bytes) -> None:
        """A save is kept, and does not exist."""

    def removed_above(self, entry: Entry, highest: int) -> None:
        """The removed entry has a higher step than `highest`, the highest of those that stay."""

    def retracted(self, entry: Entry) -> None:
        """A publication was taken back."""

    def stays(self, path: bytes, reason: str) -> None:
        """A save that was to be removed stays, for this reason."""

    def nothing_left(self) -> None:
        """The last publication is gone: the next execution starts from step 0."""

    def removed(self, path: bytes) -> None:
        """A save existed and has been removed."""

    def left_behind_link(self, path: bytes, link: bytes) -> None:
        """A save was left in place because `link`, on its path, is a symbolic link."""

    def left_behind_links(self, saves: int) -> None:
        """`saves`: how many saves, 2 or more, were left because of links. Each was reported before."""

    def removal_failed(self, path: bytes, fault: PublishError) -> None:
        """A save or an entry (by its path below the root) could not be removed."""

    def progress(self, done: int, total: int) -> None:
        """`done` of `total` saves have been processed; called with 0 first."""
