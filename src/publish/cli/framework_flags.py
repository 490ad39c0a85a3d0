"""The flags that choose how saves are recognised, for every verb that watches."""

from __future__ import annotations

from publish.cli.goflag import Flag, boolean, path, positive
from publish.domain.errors import UsageError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.layout import Check
from publish.domain.light_typing import TypeVar
from publish.domain.marker_framework import NAME as MARKER_FRAMEWORK
from publish.domain.marker_framework import marker_framework, parse_folder, parse_forbid, parse_marker, parse_tracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from publish.cli.goflag import CommandLine
    from publish.domain.layout import Framework

T = TypeVar("T")


def _name(value: str) -> str:
    if value not in (*FRAMEWORKS, MARKER_FRAMEWORK):
        raise UsageError(f"expected {', '.join(FRAMEWORKS)} or {MARKER_FRAMEWORK}: {value}")
    return value


def _of_path(parse: Callable[[bytes], T]) -> Callable[[str], T]:
    return lambda value: parse(path(value))


FRAMEWORK = Flag(
    "framework",
    _name,
    "NAME",
    f"the framework that writes the saves: {', '.join(FRAMEWORKS)}, or {MARKER_FRAMEWORK}",
    required=True,
)
FOLDER = Flag(
    "folder",
    _of_path(parse_folder),
    "REGEX",
    "with -framework marker: the whole name of a save; its last group is the step",
)
MARKER = Flag(
    "marker",
    _of_path(parse_marker),
    "PATTERN[:CHECK]",
    "with -framework marker, repeatable: a file that a complete save has (. for a save that is one file), and what "
    f"must be true of it: {', '.join(check.value for check in Check)}, json:KEY or json:KEY=step; default: full",
)
FORBID = Flag(
    "forbid",
    _of_path(parse_forbid),
    "PATTERN",
    "with -framework marker, repeatable: what a complete save does not have; ../ looks beside it, {} is its name",
)
TRACKER = Flag(
    "tracker",
    _of_path(parse_tracker),
    "FILE[==]",
    "with -framework marker: a file beside the saves that names the save or a later one; with == this very save",
)
SETTLE = Flag(
    "settle",
    boolean,
    "",
    "with -framework marker: a save is complete only when two scans in a row see the same files",
    default="false",
)
RANKS = Flag("ranks", positive, "N", "with -framework marker: how many files the check ranks asks for")

MARKER_FLAGS: tuple[Flag[Any], ...] = (FOLDER, MARKER, FORBID, TRACKER, SETTLE, RANKS)
FRAMEWORK_FLAGS: tuple[Flag[Any], ...] = (FRAMEWORK, *MARKER_FLAGS)


def chosen_framework(line: CommandLine) -> Framework:
    """What the flags choose. Raises UsageError."""
    name = line[FRAMEWORK]
    if name != MARKER_FRAMEWORK:
        for flag in MARKER_FLAGS:
            if line.is_set(flag):
                raise UsageError(f"-{flag.name} applies only to -framework {MARKER_FRAMEWORK}: {name}")
        return FRAMEWORKS[name]
    needs = tuple(line.every(MARKER))
    if not needs:
        raise UsageError(f"{MARKER.synopsis} is required with -framework {MARKER_FRAMEWORK}")
    return marker_framework(
        line[FOLDER],
        needs,
        forbids=tuple(line.every(FORBID)),
        tracker=line.get(TRACKER),
        settle=line[SETTLE],
        ranks=line.get(RANKS),
    )
