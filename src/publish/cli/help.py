"""Help as text, made from the table of verbs."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from publish.cli.flags import Flag
from publish.cli.verbs import VERBS, Verb

_WIDTH = 100
_INDENT = " " * 6

STATUSES = (
    ("0", "done, and nothing to do counts as done"),
    ("1", "it failed; stderr says why"),
    ("2", "usage error: the command line or a variable; stderr says how to call it"),
    ("130, 143", "ended by SIGINT, SIGTERM"),
)
VARIABLES = (
    ("DISPATCH_EPOCH", "epoch", "the execution's epoch where -epoch is not given"),
    ("DISPATCH_ATTEMPT", "attempt", "the execution's name where -attempt is not given"),
)


def overview() -> str:
    """What `publish help` prints."""
    return "\n".join(
        [
            "publish records which saves of a training job are complete, and finds the one to resume from.",
            "",
            "usage: publish VERB [flags] [positionals]",
            "",
            "verbs:",
            *_columns(
                [
                    *((verb.name, verb.summary) for verb in VERBS),
                    ("help [VERB]", "print this, or what there is to know of a verb; so does -h"),
                    ("-version", "print the version"),
                ]
            ),
            "",
            *_variables([name for name, _, _ in VARIABLES]),
            *_statuses(STATUSES),
            "Answers go to stdout, everything else to stderr in lines that start with `publish: `.",
            "",
            "example, in a job script:",
            *(f"  {verb.example}" for verb in VERBS[:2]),
            "",
        ]
    )


def of_verb(verb: Verb) -> str:
    """What `publish help VERB` and `publish VERB -h` print."""
    names = {flag.name for flag in verb.flags}
    return "\n".join(
        [
            f"usage: {verb.usage}",
            "",
            *verb.about,
            "",
            "flags:",
            *(line for flag in verb.flags for line in _flag(flag)),
            "",
            *_variables([name for name, flag, _ in VARIABLES if flag in names]),
            *_statuses([("0", verb.success), *STATUSES[1:]]),
            "example:",
            f"  {verb.example}",
            "",
        ]
    )


def _flag(flag: Flag) -> list[str]:
    head = f"  -{flag.name} {flag.value}".rstrip()
    if flag.required:
        head += " (required)"
    elif flag.default:
        head += f" (default {flag.default})"
    return [head, *wrap(flag.help, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)]


def _variables(names: list[str]) -> list[str]:
    if not names:
        return []
    return ["environment:", *_columns([(name, words) for name, _, words in VARIABLES if name in names]), ""]


def _statuses(statuses: Sequence[tuple[str, str]]) -> list[str]:
    return ["exit status:", *_columns(statuses), ""]


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(left) for left, _ in rows)
    return [f"  {left:{width}}  {right}" for left, right in rows]
