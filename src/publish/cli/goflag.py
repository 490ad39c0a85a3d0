"""Command-line flags as Go's `flag` package takes them (cli.1, cli.2), and the values that more than one flag has.

Source: the documentation and the behaviour of Go's package `flag`, "Command line flag syntax".
"""

from __future__ import annotations

from publish.domain.entry import MAX_UINT64
from publish.domain.errors import UsageError
from publish.domain.go_syntax import FALSE, NANOSECONDS, TRUE
from publish.domain.light_typing import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

T = TypeVar("T")

_DIGITS = "0123456789"
_MAX_DURATION = 2**63 - 1
# int() refuses over 4,300 digits; a number this long is out of range anyway.
_MAX_DIGITS = 20


class Flag(Generic[T]):
    """One flag. A flag without a `metavar` is a switch."""

    def __init__(
        self,
        name: str,
        parse: Callable[[str], T],
        metavar: str,
        about: str,
        *,
        default: str = "",
        required: bool = False,
        variable: str = "",
        only_for: str = "",
    ) -> None:
        """`parse` raises UsageError for a text that can never be right.

        `default` is written as on the command line, "" for none. `variable` is the environment
        variable that counts if the flag is not given. `only_for` names the kind of root that the
        flag applies to, in the plural; "" for every kind. `required` is about those roots only.
        """
        self.name = name
        self.parse = parse
        self.metavar = metavar
        self.about = about
        self.default = default
        self.required = required
        self.variable = variable
        self.only_for = only_for

    def described_as(self, about: str) -> Flag[T]:
        """The same flag with another help text, for a verb in which it means something else."""
        return Flag(
            self.name,
            self.parse,
            self.metavar,
            about,
            default=self.default,
            required=self.required,
            variable=self.variable,
            only_for=self.only_for,
        )

    @property
    def synopsis(self) -> str:
        """The flag as it is given: `-keep N`."""
        return f"-{self.name} {self.metavar}".rstrip()


class CommandLine:
    """What a command line says: the parsed value of each flag that was given, and the positionals."""

    def __init__(
        self, values: Mapping[str, Sequence[object]], positionals: Sequence[str], env: Mapping[str, str]
    ) -> None:
        """`values`: by a flag's name, everything that it was given, in order."""
        self._values = values
        self._env = env
        self.positionals = positionals

    def every(self, flag: Flag[T]) -> Sequence[T]:
        """All values that a repeatable flag was given, in order."""
        return self._values.get(flag.name, ())  # type: ignore[return-value]  # `parse` below filled it

    def get(self, flag: Flag[T]) -> T | None:
        """The last value that was given, else the variable's, else the default; None if there is none of them.

        Raises UsageError for a variable that cannot be parsed.
        """
        given = self.every(flag)
        if given:
            return given[-1]
        if flag.variable in self._env:
            return _parse(flag, self._env[flag.variable])
        return flag.parse(flag.default) if flag.default else None

    def __getitem__(self, flag: Flag[T]) -> T:
        """As `get`; raises UsageError if there is no value."""
        value = self.get(flag)
        if value is None:
            if flag.variable:
                raise UsageError(f"no {flag.name} given: use -{flag.name} or set {flag.variable}")
            raise UsageError(f"{flag.synopsis} is required")
        return value

    def is_set(self, flag: Flag[T]) -> bool:
        """Whether the flag was given a value that is neither empty nor the default."""
        given = self.every(flag)
        return bool(given) and given[-1] not in ("", flag.parse(flag.default) if flag.default else None)


class HelpRequested(Exception):
    """-h or -help was given; what follows it does not count."""


def suggestion(word: str, known: Iterable[str], prefix: str = "") -> str:
    """A parenthesis for a message with the known word that is nearest to a mistyped one; empty if none is near."""
    from difflib import get_close_matches  # start-up: only on an error

    return "".join(f" (did you mean {prefix}{match}?)" for match in get_close_matches(word, known, 1, 0.7))


def parse(flags: Sequence[Flag[Any]], arguments: Sequence[str], env: Mapping[str, str]) -> CommandLine:
    """Takes flags until the first positional or `--`. Raises UsageError and HelpRequested."""
    by_name = {flag.name: flag for flag in flags}
    values: dict[str, list[object]] = {}
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
        flag = by_name.get(name)
        if flag is None:
            if name in {"h", "help"}:
                raise HelpRequested
            raise UsageError(f"unknown flag{suggestion(name, by_name, '-')}: -{name}")
        if not equals:
            if not flag.metavar:
                value = "true"
            elif at < len(arguments):
                value = arguments[at]
                at += 1
            else:
                raise UsageError(f"-{name} needs a value: {flag.synopsis}")
        values.setdefault(name, []).append(_parse(flag, value))
    return CommandLine(values, arguments[at:], env)


def _parse(flag: Flag[T], text: str) -> T:
    try:
        return flag.parse(text)
    except UsageError as error:
        source = f" or {flag.variable}" if flag.variable else ""
        raise UsageError(f"-{flag.name}{source}: {error}") from error


def text(value: str) -> str:
    """Any text."""
    return value


def path(value: str) -> bytes:
    """The bytes of a path, which need not be UTF-8."""
    return value.encode("utf-8", "surrogateescape")


def boolean(value: str) -> bool:
    """One of Go's words for true and false. Raises UsageError."""
    if value in TRUE:
        return True
    if value in FALSE:
        return False
    raise UsageError(f"expected true or false: {value}")


def unsigned(value: str) -> int:
    """An unsigned 64-bit decimal number; leading zeros do not matter. Raises UsageError."""
    if not value:
        raise UsageError("not an unsigned decimal number, but empty (unset it, or give a number)")
    if value.strip(_DIGITS):
        raise UsageError(f"not an unsigned decimal number: {value}")
    digits = value.lstrip("0")
    if len(digits) > _MAX_DIGITS or int(digits or "0") > MAX_UINT64:
        raise UsageError(f"over 2^64-1: {value}")
    return int(digits or "0")


def positive(value: str) -> int:
    """An unsigned decimal number of at least 1. Raises UsageError."""
    number = unsigned(value)
    if number == 0:
        raise UsageError(f"must be at least 1: {value}")
    return number


def duration(value: str) -> float:
    """A Go duration above zero, such as 300ms or 1h30m, in seconds. Raises UsageError."""
    rest = value.removeprefix("+")
    if rest == "0":
        raise UsageError(f"must be above zero: {value}")
    total = 0
    while True:
        whole, rest = _split_digits(rest)
        fraction = ""
        if rest.startswith("."):
            fraction, rest = _split_digits(rest[1:])
        # The longest unit first: m is the start of ms.
        unit = next((unit for unit in NANOSECONDS if rest.startswith(unit)), None)
        if unit is None or not (whole or fraction):
            raise UsageError(f"not a duration such as 300ms, 10s or 1h30m: {value}")
        total += _nanoseconds(whole, fraction, NANOSECONDS[unit])
        rest = rest.removeprefix(unit)
        if not rest:
            break
    if total > _MAX_DURATION:
        raise UsageError(f"duration too long: {value}")
    if total == 0:
        raise UsageError(f"must be above zero: {value}")
    return total / 10**9


def _split_digits(value: str) -> tuple[str, str]:
    rest = value.lstrip(_DIGITS)
    return value[: len(value) - len(rest)], rest


def _nanoseconds(whole: str, fraction: str, unit: int) -> int:
    """One part of a duration; over `_MAX_DURATION` if it is out of range."""
    digits = whole.lstrip("0")
    if len(digits) > _MAX_DIGITS:
        return _MAX_DURATION + 1
    # Further digits are below a nanosecond even of an hour.
    fraction = fraction[:_MAX_DIGITS]
    return int(digits or "0") * unit + int(fraction or "0") * unit // int(10 ** len(fraction))
