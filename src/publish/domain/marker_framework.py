"""`-framework marker`: a row of the table in `frameworks` that the command line writes."""

from __future__ import annotations

from publish.domain.entry import to_text
from publish.domain.errors import UsageError
from publish.domain.layout import ITSELF, Check, Framework, Layout, Need, Tracker

NAME = "marker"


def parse_folder(pattern: bytes) -> bytes:
    """A regular expression for the whole name of a save, with a group for the step. Raises UsageError."""
    import re  # start-up: few choose this framework

    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"not a regular expression ({error}): {to_text(pattern)}") from error
    if not expression.groups:
        raise UsageError(f"needs a group for the step, such as step-([0-9]+): {to_text(pattern)}")
    return pattern


def parse_marker(text: bytes) -> Need:
    """PATTERN[:CHECK], where CHECK may be json:KEY=step or json:KEY. Raises UsageError."""
    pattern, _, words = text.partition(b":")
    name, _, key = to_text(words).partition(":")
    if pattern != ITSELF and not _is_path(pattern):
        raise UsageError(f"not the path of a file in the save: {to_text(pattern)}")
    try:
        check = Check(name) if words else Check.FULL
    except ValueError as error:
        checks = ", ".join(check.value for check in Check)
        raise UsageError(f"unknown check (one of {checks}): {name}") from error
    if key and check is not Check.JSON:
        raise UsageError(f"only the check json takes a key: {to_text(text)}")
    if key.endswith("=step"):
        return Need(pattern, check, step_key=key.removesuffix("=step"))
    return Need(pattern, check, set_key=key)


def parse_forbid(pattern: bytes) -> bytes:
    """A pattern in the save, or beside it after `../`, where `{}` is the name of the save. Raises UsageError."""
    inside = pattern.removeprefix(b"../")
    if not _is_path(inside) or (b"*" in inside and b"/" in inside):
        raise UsageError(f"not a path in the save, nor a name beside it: {to_text(pattern)}")
    return pattern


def parse_tracker(text: bytes) -> Tracker:
    """FILE beside the saves, or FILE== if it must name the very save. Raises UsageError."""
    file = text.removesuffix(b"==")
    if b"/" in file or not _is_path(file):
        raise UsageError(f"not the name of a file beside the saves: {to_text(file)}")
    return Tracker(file, exact=file != text)


def marker_framework(
    folder: bytes,
    needs: tuple[Need, ...],
    *,
    forbids: tuple[bytes, ...] = (),
    tracker: Tracker | None = None,
    settle: bool = False,
    ranks: int | None = None,
) -> Framework:
    """The framework of one row. Raises UsageError for markers that no save can have together."""
    if any(need.pattern == ITSELF for need in needs) and (len(needs) > 1 or forbids or settle):
        raise UsageError("a save that is one file (.) has no other marker, nothing to forbid and nothing to settle")
    if ranks is not None and not any(need.check is Check.RANKS for need in needs):
        raise UsageError("-ranks needs a marker with the check ranks")
    layout = Layout(
        (to_text(folder),),
        folder,
        needs,
        forbids=forbids,
        tracker=tracker,
        settle=settle,
        ranks=ranks,
        shortest_name=b"0",
    )
    return Framework(NAME, (layout,), "anything else, by its marker")


def _is_path(text: bytes) -> bool:
    return b"\0" not in text and not any(part in {b"", b".", b".."} for part in text.split(b"/"))
