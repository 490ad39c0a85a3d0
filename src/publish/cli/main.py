"""From arguments to an exit status: the one place that turns errors into words."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from publish import __version__
from publish.cli import flags, options
from publish.cli.flags import HelpRequested
from publish.cli.options import Common, Options, Resolve
from publish.cli.output import Output, OutputError
from publish.cli.site import Job, is_same_place, working_directory
from publish.cli.verbs import BY_NAME, Verb
from publish.domain.errors import ConfigError, CredentialsError, PublishError, StoreFault, TimedOut, UsageError
from publish.domain.root import PosixRoot, Root, parse_root

DONE, FAILED, USAGE = 0, 1, 2

# So many faults of one kind are told one by one.
MAX_FAULTS_SHOWN = 20

# Where a URL with a password is given in the place of a word, an error quotes it without (F9). The value
# that a usage error quotes is the last that it says, and no other in it holds a URL with an @.
_USERINFO = re.compile(r"://.*@", re.DOTALL)


def main(arguments: Sequence[str], env: Mapping[str, str], output: Output, started: float) -> int:
    """Does what the command line asks for; returns the exit status (F5).

    `arguments` come without the program's name; `started` is the moment of `time.monotonic`, in
    seconds, from which `-timeout` counts. No Exception leaves it.
    """
    try:
        status = _dispatch(arguments, env, output, started)
        output.finish()
    except OutputError as error:
        output.note(str(error))
        return FAILED
    except Exception as error:  # noqa: BLE001  (the unforeseen; a traceback is no answer to a user)
        # Its text may hold anything, a secret too: only what and where is told.
        output.note(f"internal error, please report it: {type(error).__name__} at {_place(error)}")
        return FAILED
    return status


def _dispatch(arguments: Sequence[str], env: Mapping[str, str], output: Output, started: float) -> int:
    usage, topic = "publish VERB [flags] [positionals]", ""
    try:
        name, rest = _first_word(arguments)
        verb = BY_NAME.get(name)
        if verb is None:
            return _about_itself(name, rest, output)
        usage, topic = verb.usage, verb.name
        return _verb(verb, rest, env, output, started)
    except HelpRequested:
        return _about_itself("help", [topic] if topic else [], output)
    except UsageError as error:
        output.note(_words(error))
        output.note(f"usage: {usage}")
        output.note(f"more: publish help {topic}".rstrip())
        return USAGE


def _first_word(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The verb and what follows it, or `-version`."""
    try:
        line = flags.parse((flags.VERSION,), arguments)
    except UsageError as error:
        raise UsageError(f"{error} (the verb comes first)") from error
    if flags.VERSION.check(line.given.get("version", flags.VERSION.default)):
        return "-version", ()
    if not line.rest:
        raise UsageError("no verb given")
    return line.rest[0], line.rest[1:]


def _about_itself(name: str, arguments: Sequence[str], output: Output) -> int:
    """Answers `-version` and `help [VERB]`. Raises UsageError for any other word."""
    if name == "-version":
        output.answer(f"publish {__version__}".encode())
        return DONE
    if name != "help":
        raise UsageError(f"no such verb: {name}")
    topics = flags.parse((), arguments).rest
    if len(topics) > 1:
        raise UsageError(f"help is for one verb: {' '.join(topics)}")

    from publish.cli import help as texts  # noqa: PLC0415  (start-up: no verb needs it)

    if not topics or topics[0] == "help":
        output.answer(texts.overview().encode())
    elif topics[0] in BY_NAME:
        output.answer(texts.of_verb(BY_NAME[topics[0]]).encode())
    else:
        raise UsageError(f"no such verb: {topics[0]}")
    return DONE


def _verb(verb: Verb, arguments: Sequence[str], env: Mapping[str, str], output: Output, started: float) -> int:
    line = flags.parse(verb.flags, arguments)
    common = options.common(verb, line)
    wanted = options.of_verb(verb, line, env)
    on_s3 = common.checkpoint.startswith(b"s3://")
    try:
        job = Job(_root(common, wanted), common, env, output, started)
        from publish.cli import run  # noqa: PLC0415  (start-up: help and usage errors do without)

        done = run.verb(wanted, job)
    except UsageError:
        raise
    except PublishError as error:
        for fault in (error, *error.more[: MAX_FAULTS_SHOWN - 1]):
            output.note(_words(fault, on_s3=on_s3))
        if len(error.more) >= MAX_FAULTS_SHOWN:
            output.note(f"and {len(error.more) + 1 - MAX_FAULTS_SHOWN} more")
        return FAILED
    if done.answer is not None:
        output.answer(done.answer)
    return DONE if done.complete else FAILED


def _root(common: Common, wanted: Options) -> Root:
    """The root; whether the flags suit its kind is looked at before whether it can be one (F6)."""
    if common.proxy is not None:
        _check_proxy(common.proxy)
    if common.checkpoint.startswith(b"s3://") and common.creds is None:
        raise UsageError("-creds LIST is required for an S3 root")
    if isinstance(parse_root(common.checkpoint, b"/", is_same_place), PosixRoot):
        for flag, given in (
            (flags.CREDS, common.creds is not None),
            (flags.PROXY, common.proxy is not None),
            (flags.PROBE, isinstance(wanted, Resolve) and wanted.probe),
        ):
            if given:
                raise UsageError(f"-{flag.name} is for S3 roots only, and the root is a directory")
    return parse_root(common.checkpoint, working_directory(common.checkpoint), is_same_place)


def _check_proxy(url: str) -> None:
    from publish.domain import proxy  # noqa: PLC0415  (start-up: seldom given)

    try:
        proxy.check(url)
    except ConfigError as error:
        raise UsageError(f"-proxy: {error}") from error


def _words(error: PublishError, *, on_s3: bool = False) -> str:
    """What the user reads. Where to look comes first: at the credentials, at the store, or at what was named."""
    text = _USERINFO.sub("://", str(error)) if isinstance(error, UsageError) else str(error)
    if isinstance(error, CredentialsError):
        return f"credentials: {text}"
    if on_s3 and isinstance(error, StoreFault | TimedOut):
        return f"store: {text}"
    return text


def _place(error: Exception) -> str:
    """The line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
