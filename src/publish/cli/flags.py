"""Flags as Go's `flag` package takes them (F1): what is parsed and what help shows come from one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from publish.cli import values
from publish.domain.errors import UsageError


class Flag(NamedTuple):
    """One flag. `value` is its value's name in help, "" for a switch; `default` "" for none.

    `check` raises UsageError for a text that can never be right; it sees every one given,
    not only the last.
    """

    name: str
    value: str
    check: Callable[[str], object]
    help: str
    default: str = ""
    required: bool = False


class Parsed(NamedTuple):
    """A command line: the texts of the flags that were given, the last of each, and the rest."""

    given: Mapping[str, str]
    rest: Sequence[str]


class HelpRequested(Exception):
    """A flag asked for help; nothing after it counts."""


def parse(flags: Sequence[Flag], arguments: Sequence[str]) -> Parsed:
    """Takes flags until the first positional or `--`. Raises UsageError and HelpRequested.

    Source: the documentation and the behaviour of Go's package `flag`, "Command line flag syntax".
    """
    known = {flag.name: flag for flag in flags}
    given: dict[str, str] = {}
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if argument == "-" or not argument.startswith("-"):
            break
        at += 1
        if argument == "--":
            break
        name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
        if not name or name.startswith("-"):
            raise UsageError(f"bad flag syntax: {argument.removesuffix(value)}")
        flag = known.get(name)
        if flag is None:
            if name in {"h", "help"}:
                raise HelpRequested
            raise UsageError(f"no such flag: -{name}")
        if not equals:
            if not flag.value:
                value = "true"
            elif at < len(arguments):
                value = arguments[at]
                at += 1
            else:
                raise UsageError(f"-{name} needs a value: {flag.value}")
        _check(flag, value)
        given[name] = value
    return Parsed(given, arguments[at:])


def _check(flag: Flag, value: str) -> None:
    try:
        flag.check(value)
    except UsageError as error:
        raise UsageError(f"-{flag.name}: {error}") from error


CHECKPOINT = Flag(
    "checkpoint", "ROOT", values.text, "the checkpoint root: a directory or s3://BUCKET/PREFIX", required=True
)
CREDS = Flag(
    "creds",
    "LIST",
    values.text,
    "where the credentials of an S3 root are found: kind:location,... with the kinds secret, file and vault, "
    "tried in order; required for an S3 root, refused for a directory",
)
PROXY = Flag(
    "proxy", "URL", values.text, "the proxy to an S3 root, http(s)://HOST[:PORT]; none: direct; refused for a directory"
)
TIMEOUT = Flag(
    "timeout", "D", values.duration, "how long the verb may take on an S3 root, credentials included", default="5m"
)
SCAN_TIMEOUT = TIMEOUT._replace(help="how long one scan may take on an S3 root, or the last scan on a directory")
EPOCH = Flag(
    "epoch",
    "N",
    values.text,
    "this execution's epoch, higher than any earlier execution's; default: the variable DISPATCH_EPOCH",
)
ATTEMPT = Flag(
    "attempt",
    "A",
    values.text,
    "this execution's name, where SAVES is not given; default: the variable DISPATCH_ATTEMPT",
)
PROBE = Flag("probe", "", values.boolean, "run the checks of `publish probe` first; S3 roots only", default="false")
FRAMEWORK = Flag("framework", "hf|dcp", values.framework, "whose saves these are", required=True)
INTERVAL = Flag("interval", "D", values.duration, "how long to wait between two scans", default="10s")
KEEP = Flag("keep", "N", values.positive, "how many of the latest publications stay, at least 1", default="3")
VERSION = Flag("version", "", values.boolean, "print the version", default="false")
