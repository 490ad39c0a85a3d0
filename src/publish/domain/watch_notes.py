"""What a watch tells its user besides the publications (watch.8). Each note is said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from publish.domain.entry import to_text
from publish.domain.layout import Framework
from publish.domain.recognition import Recogniser
from publish.domain.report import Report
from publish.domain.root import Root
from publish.domain.watch import Incomplete, Scan

# Long enough for a first save to begin, short enough for its author to be still there.
FIRST_NOTE_SECONDS = 60.0
STALLED_SECONDS = 1800.0


class WatchNotes:
    """Decides when a scan, or the end of a watch, is worth a note. Times are seconds of one clock."""

    def __init__(
        self,
        report: Report,
        recogniser: Recogniser,
        root: Root,
        framework: Framework,
        saves: bytes,
        started: float,
        advice: str = "",
    ) -> None:
        """`advice`: what to do if there was no save until the end."""
        self._report = report
        self._recogniser = recogniser
        self._root = root
        self._framework = framework
        self._saves = saves
        self._started = started
        self._advice = advice
        # Each save that is not complete, and when it was first seen so.
        self._since: dict[bytes, float] = {}
        # Saves that a note has called incomplete.
        self._told: set[bytes] = set()
        # Notes that were given, and checks that found nothing: repeating them at each scan would cost requests.
        self._done: set[tuple[str, bytes]] = set()

    def begin(self, epoch: int, interval: float) -> None:
        """What is watched, and how."""
        self._report.note(
            f"watching {self._text(self._saves)} for saves of {self._framework.name} "
            f"({', '.join(self._framework.forms)}), epoch {epoch}, every {interval:g}s"
        )

    def after_scan(self, scan: Scan, now: float) -> None:
        """Says what keeps saves from being published, once it has done so for a while."""
        if scan.saves == 0 and now - self._started >= FIRST_NOTE_SECONDS and self._mark_done("no saves"):
            self._report.note(self._recogniser.describe_no_saves())
        if scan.saves and now - self._started >= FIRST_NOTE_SECONDS and self._mark_done("neglected"):
            self._note_neglected()
        self._since = {save.path: self._since.get(save.path, now) for save, _ in scan.incomplete}
        if scan.incomplete:
            self._note_newest(scan.incomplete[-1], now)
        self._note_overtaken(scan.incomplete[:-1], now)

    def _note_newest(self, newest: Incomplete, now: float) -> None:
        path, waited = newest.save.path, now - self._since[newest.save.path]
        looks = waited >= FIRST_NOTE_SECONDS and self._mark_done("other framework", path)
        if looks and (hint := self._recogniser.other_framework([path])):
            self._say(path, f"is not complete: {newest.reason}; {hint}")
        if waited >= STALLED_SECONDS and self._mark_done("stalled", path):
            self._say(path, f"has not become complete for 30 minutes: {newest.reason}")

    def _note_overtaken(self, overtaken: Sequence[Incomplete], now: float) -> None:
        """Where saves follow each other quickly, none of them is the newest for long."""
        for (_, path), reason in reversed(overtaken):
            is_late = path not in self._told and now - self._since[path] >= FIRST_NOTE_SECONDS
            if is_late and self._mark_done("overtaken"):
                hint = self._recogniser.other_framework([path])
                self._say(path, _joined(f"is not complete although a later save has begun: {reason}", hint))

    def _note_neglected(self) -> None:
        if neglected := self._recogniser.describe_neglected():
            self._report.note(neglected)

    def _say(self, path: bytes, what: str) -> None:
        self._told.add(path)
        self._report.note(f"{self._text(path)} {what}")

    def _mark_done(self, what: str, path: bytes = b"") -> bool:
        if (what, path) in self._done:
            return False
        self._done.add((what, path))
        return True

    def end(self, scan: Scan, reason: str, published: int) -> None:
        """Why the watch ended, how many saves it published, and what it leaves unpublished."""
        self._report.note(f"{reason}: published {published} {_saves(published)}")
        if scan.saves == 0 and published:
            self._report.note(f"{self._text(self._saves)} holds no save any more")
        elif scan.saves == 0:
            why = self._recogniser.describe_no_saves(ended=True)
            self._report.note(_joined(why, self._advice))
        if scan.incomplete:
            hint = self._recogniser.other_framework([scan.incomplete[-1].save.path])
            self._report.note(_joined(self._describe(scan.incomplete), hint))
        if scan.saves:
            self._note_neglected()

    def failed(self, published: int) -> None:
        """An error, which is printed next, ends the watch."""
        self._report.note(f"ended by an error: published {published} {_saves(published)}")

    def _describe(self, incomplete: Sequence[Incomplete]) -> str:
        count = len(incomplete)
        kinds = Counter(reason for _, reason in reversed(incomplete))
        newest = self._text(incomplete[-1].save.path)
        reasons = ", ".join(f"{reason} ({number})" if len(kinds) > 1 else reason for reason, number in kinds.items())
        if count == 1:
            return f"1 save is not complete, {newest}: {reasons}"
        return f"{count} saves are not complete, the newest is {newest}: {reasons}"

    def _text(self, path: bytes) -> str:
        return to_text(self._root.render(path))


def _joined(line: str, hint: str | None) -> str:
    return f"{line}; {hint}" if hint else line


def _saves(count: int) -> str:
    return "save" if count == 1 else "saves"
