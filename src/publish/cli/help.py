"""Help texts, made from the verbs' own tables."""

from __future__ import annotations

from textwrap import wrap

from publish.cli import verbs
from publish.cli.verbs.common import ATTEMPT, EPOCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from publish.cli.goflag import Flag
    from publish.cli.verbs.common import Verb

_WIDTH = 100
_INDENT = " " * 6

STATUSES = (
    ("0", "success (including nothing to do)"),
    ("1", "failure; stderr says why"),
    ("2", "usage error: the command line or a variable; stderr says how to call it"),
    ("130, 143", "ended by SIGINT, SIGTERM (watch: by the second one)"),
    ("142", "out of time (-timeout), and ended by the kernel because publish could not end itself"),
)
VARIABLES = (
    (EPOCH, "the execution's epoch if -epoch is not given"),
    (ATTEMPT, "the execution's name if -attempt is not given"),
)


def overview() -> str:
    """What `publish help` prints."""
    listed = [verbs.load(name) for name in verbs.NAMES]
    return "\n".join(
        [
            "publish records which saves of a training job are complete, and finds the one to resume from.",
            "",
            "usage: publish VERB [flags] [positionals]",
            "",
            "verbs:",
            *_columns(
                [
                    *((verb.name, verb.summary) for verb in listed),
                    ("help [VERB]", "show this, or help for a verb (same as -h)"),
                    ("-version", "print the version"),
                ]
            ),
            "",
            *_variables([flag for flag, _ in VARIABLES]),
            *_statuses(STATUSES),
            "Results go to stdout, everything else to stderr in lines that start with `publish: `.",
            "",
            "example, in a job script:",
            *(f"  {verb.example}" for verb in listed[:2]),
            "",
        ]
    )


def verb_help(verb: Verb) -> str:
    """What `publish help VERB` and `publish VERB -h` print."""
    return "\n".join(
        [
            f"usage: {verb.usage}",
            "",
            *_about(verb),
            "",
            "flags:",
            *(line for flag in verb.flags for line in _flag(verb, flag)),
            "",
            *_variables(verb.flags),
            *_statuses([("0", verb.success), *STATUSES[1:], *verb.statuses]),
            "example:",
            f"  {verb.example}",
            "",
        ]
    )


def _about(verb: Verb) -> list[str]:
    width = max((len(row[0]) for row in verb.about if isinstance(row, tuple)), default=0)
    lines: list[str] = []
    for part in verb.about:
        if isinstance(part, str):
            lines.append(part)
        else:
            left, right = part
            lines += wrap(right, _WIDTH, initial_indent=f"  {left:{width}}  ", subsequent_indent=" " * (width + 4))
    return lines


def _flag(verb: Verb, flag: Flag[Any]) -> list[str]:
    notes = []
    if flag.only_for not in ("", verb.only_for):
        notes.append(f"required for {flag.only_for}" if flag.required else f"only for {flag.only_for}")
    elif flag.required:
        notes.append("required")
    if flag.default and flag.metavar:
        notes.append(f"default {flag.default}")
    elif flag.default == "true":
        notes.append(f"on; -{flag.name}=false turns it off")
    head = f"  {flag.synopsis}" + (f" ({', '.join(notes)})" if notes else "")
    return [head, *wrap(flag.about, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)]


def _variables(flags: Sequence[Flag[Any]]) -> list[str]:
    read = {flag.variable for flag in flags}
    rows = [(flag.variable, words) for flag, words in VARIABLES if flag.variable in read]
    return ["environment:", *_columns(rows), ""] if rows else []


def _statuses(statuses: Sequence[tuple[str, str]]) -> list[str]:
    return ["exit status:", *_columns(statuses), ""]


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(left) for left, _ in rows)
    return [f"  {left:{width}}  {right}" for left, right in rows]
