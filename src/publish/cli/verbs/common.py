"""What verbs are made of, and the flags that several of them take."""

from __future__ import annotations

from publish.cli.goflag import Flag, boolean, duration, path, positive, text, unsigned
from publish.domain.entry import has_control_characters
from publish.domain.errors import ConfigError, UsageError
from publish.domain.light_typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from publish.cli.goflag import CommandLine
    from publish.cli.output import Output


T = TypeVar("T")

EXIT_OK, EXIT_FAILURE, EXIT_USAGE = 0, 1, 2

# Values of `Flag.only_for` and `Verb.only_for`.
ONLY_S3 = "S3 roots"
ONLY_DIRECTORIES = "directories"


class Verb:
    """One verb: how it is called, what help says of it, and what it does."""

    def __init__(
        self,
        name: str,
        run: Callable[[Invocation], int],
        summary: str,
        about: Sequence[str | tuple[str, str]],
        flags: Sequence[Flag[Any]],
        example: str,
        *,
        positionals: Sequence[str] = (),
        success: str = "success (including nothing to do)",
        statuses: Sequence[tuple[str, str]] = (),
        only_for: str = "",
    ) -> None:
        """`positionals`: their names; one in brackets is optional, and one that ends in "..." may be repeated.

        The first may come after "-- ".
        `run` returns the exit status and raises PublishError. It reads every flag and
        positional before it touches the root, so that usage errors come first (cli.6).
        `about`: lines, and rows of two columns. `success`: what exit status 0 means. `only_for`: as in `Flag`.
        `statuses`: exit statuses that other verbs do not have, and what they mean.
        """
        self.name = name
        self.run = run
        self.summary = summary
        self.about = about
        self.flags = flags
        self.example = example
        self.positionals = positionals
        self.success = success
        self.statuses = statuses
        self.only_for = only_for

    @property
    def usage(self) -> str:
        """How the verb is called."""
        required = [flag.synopsis for flag in self.flags if self.requires(flag)]
        return " ".join(["publish", self.name, *required, "[flags]", *self.positionals])

    def requires(self, flag: Flag[Any]) -> bool:
        """Whether the flag must be given for every root that the verb takes."""
        return flag.required and flag.only_for in ("", self.only_for)

    def check(self, line: CommandLine) -> None:
        """Raises UsageError for a required flag or positional that is missing, and for one positional too many."""
        for flag in self.flags:
            if flag.required and not flag.only_for and not line.get(flag):
                raise UsageError(f"{flag.synopsis} is required")
        required = [name.removeprefix("-- ") for name in self.positionals if not name.startswith("[")]
        if len(line.positionals) < len(required):
            raise UsageError(f"{' and '.join(required)} {'is' if len(required) == 1 else 'are'} required")
        repeats = any("..." in name for name in self.positionals)
        if len(line.positionals) > len(self.positionals) and not repeats:
            extra = line.positionals[len(self.positionals)]
            raise UsageError(f"unexpected argument (flags must precede positionals): {extra}")


class Invocation:
    """One run of a verb."""

    def __init__(self, verb: Verb, line: CommandLine, env: Mapping[str, str], output: Output, started: float) -> None:
        """`started` is the moment of `time.monotonic`, in seconds, from which `-timeout` counts."""
        self.verb = verb
        self.line = line
        self.env = env
        self.output = output
        self.started = started


def positional(name: str, parse: Callable[[str], T], value: str) -> T:
    """The parsed positional. Raises UsageError that names it, also for an empty one."""
    if not value:
        raise UsageError(f"{name} is empty")
    try:
        return parse(value)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def _proxy_url(value: str) -> str:
    from publish.domain.server_url import parse_proxy_url  # start-up: rarely given

    try:
        return parse_proxy_url(value)
    except ConfigError as error:
        raise UsageError(str(error)) from error


def attempt_name(line: CommandLine) -> bytes:
    """The name of this execution, which is the name of one folder (env.1). Raises UsageError.

    Not the flag's `parse`: an attempt that is not needed is not looked at.
    """
    value = line[ATTEMPT]
    attempt = path(value)
    if value in {"", ".", ".."} or "/" in value or has_control_characters(attempt):
        places = f"-{ATTEMPT.name} or {ATTEMPT.variable}"
        raise UsageError(f"{places}: not a folder name (no slashes, no control characters): {value}")
    return attempt


CHECKPOINT = Flag("checkpoint", path, "ROOT", "the checkpoint root: a directory or s3://BUCKET/PREFIX", required=True)
CREDS = Flag(
    "creds",
    text,
    "LIST",
    "where to find the credentials of an S3 root: kind:location,... with the kinds secret, file and vault, "
    "tried in order",
    required=True,
    only_for=ONLY_S3,
)
PROXY = Flag(
    "proxy",
    _proxy_url,
    "URL",
    "the proxy to an S3 root, http(s)://HOST[:PORT]; default: direct connection",
    only_for=ONLY_S3,
)
TIMEOUT = Flag(
    "timeout",
    duration,
    "DURATION",
    "for S3 roots: how long the verb may take, credentials included",
    default="5m",
)
VERIFY = Flag(
    "verify", boolean, "", "count only saves that are whole, as `publish verify` looks at them", default="false"
)
S3_FLAGS = (CREDS, PROXY, TIMEOUT)
KEEP_EVERY = Flag("keep-every", positive, "N", "also keep every publication whose step is a multiple of N")
SYNC = Flag(
    "sync",
    boolean,
    "",
    "make the data of a save durable (fsync) before it is published",
    default="true",
    only_for=ONLY_DIRECTORIES,
)
EPOCH = Flag(
    "epoch",
    unsigned,
    "N",
    "this execution's epoch, higher than that of every earlier execution; default: $DISPATCH_EPOCH",
    variable="DISPATCH_EPOCH",
)
ATTEMPT = Flag(
    "attempt",
    text,
    "NAME",
    "this execution's name; default: $DISPATCH_ATTEMPT",
    variable="DISPATCH_ATTEMPT",
)
