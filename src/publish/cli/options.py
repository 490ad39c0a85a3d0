"""A command line and the environment as what the user wants: frozen, typed, free of usage errors.

Usage comes first (F6): whatever raises UsageError here is raised before anything is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from publish.cli import values
from publish.cli.flags import Flag, Parsed
from publish.cli.verbs import Verb
from publish.domain.errors import UsageError

T = TypeVar("T")


class Common(NamedTuple):
    """What every verb takes. `timeout` is in seconds; None: not given."""

    checkpoint: bytes
    creds: str | None
    proxy: str | None
    timeout: float


class Resolve(NamedTuple):
    """`publish resolve`."""

    probe: bool


class Watch(NamedTuple):
    """`publish watch`. `interval` is in seconds; one of `attempt` and `saves` is not None."""

    framework: str
    interval: float
    epoch: int
    attempt: bytes | None
    saves: bytes | None


class Publish(NamedTuple):
    """`publish publish`."""

    epoch: int
    save: bytes
    step: int


class Prune(NamedTuple):
    """`publish prune`."""

    keep: int


class Probe(NamedTuple):
    """`publish probe`."""


Options = Resolve | Watch | Publish | Prune | Probe


def common(verb: Verb, line: Parsed) -> Common:
    """What every verb takes, and whether the number of positionals is right. Raises UsageError."""
    for flag in verb.flags:
        if flag.required and not line.given.get(flag.name):
            raise UsageError(f"-{flag.name} {flag.value} is required")
    _count(verb, line)
    return Common(
        checkpoint=_bytes(line.given["checkpoint"]),
        creds=line.given.get("creds") or None,
        proxy=line.given.get("proxy"),
        timeout=_value(verb, line, "timeout", values.duration),
    )


def of_verb(verb: Verb, line: Parsed, env: Mapping[str, str]) -> Options:
    """What this verb takes besides. Raises UsageError."""
    return _BUILD[verb.name](verb, line, env)


def _resolve(verb: Verb, line: Parsed, env: Mapping[str, str]) -> Options:
    del env
    return Resolve(_value(verb, line, "probe", values.boolean))


def _watch(verb: Verb, line: Parsed, env: Mapping[str, str]) -> Options:
    saves = _named(line.rest[0], "SAVES") if line.rest else None
    return Watch(
        framework=_value(verb, line, "framework", values.framework),
        interval=_value(verb, line, "interval", values.duration),
        epoch=_execution(line, env, "epoch", "DISPATCH_EPOCH", values.unsigned),
        attempt=None if saves else _bytes(_execution(line, env, "attempt", "DISPATCH_ATTEMPT", values.attempt)),
        saves=saves,
    )


def _publish(verb: Verb, line: Parsed, env: Mapping[str, str]) -> Options:
    del verb
    save, step = line.rest
    return Publish(
        epoch=_execution(line, env, "epoch", "DISPATCH_EPOCH", values.unsigned),
        save=_named(save, "SAVE"),
        step=_about("STEP", step, values.unsigned),
    )


def _prune(verb: Verb, line: Parsed, env: Mapping[str, str]) -> Options:
    del env
    return Prune(_value(verb, line, "keep", values.positive))


def _probe(verb: Verb, line: Parsed, env: Mapping[str, str]) -> Options:
    del verb, line, env
    return Probe()


_BUILD: Mapping[str, Callable[[Verb, Parsed, Mapping[str, str]], Options]] = {
    "resolve": _resolve,
    "watch": _watch,
    "publish": _publish,
    "prune": _prune,
    "probe": _probe,
}


def _count(verb: Verb, line: Parsed) -> None:
    most = len(verb.positionals)
    least = sum(not name.startswith("[") for name in verb.positionals)
    if len(line.rest) < least:
        raise UsageError(f"{' and '.join(verb.positionals)} are required")
    if len(line.rest) > most:
        raise UsageError(f"one positional too many (flags come before positionals): {line.rest[most]}")


def _value(verb: Verb, line: Parsed, name: str, parse: Callable[[str], T]) -> T:
    """The flag's value, or its default's."""
    flag: Flag = next(flag for flag in verb.flags if flag.name == name)
    return parse(line.given.get(name, flag.default))


def _execution(line: Parsed, env: Mapping[str, str], name: str, variable: str, parse: Callable[[str], T]) -> T:
    """What tells executions apart: the flag's value, else the variable's (E1)."""
    given = line.given.get(name, env.get(variable))
    if given is None:
        raise UsageError(f"the {name} is in neither -{name} nor {variable}")
    return _about(f"the {name} (-{name}, else {variable})", given, parse)


def _about(what: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from error


def _named(text: str, what: str) -> bytes:
    if not text:
        raise UsageError(f"{what} is empty")
    return _bytes(text)


def _bytes(text: str) -> bytes:
    """The bytes of a path, which need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape")
