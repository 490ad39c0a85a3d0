"""From arguments to an exit status: the one place that turns errors into messages."""

from __future__ import annotations

from publish import __version__
from publish.cli import goflag, verbs
from publish.cli.goflag import Flag, HelpRequested, boolean
from publish.cli.output import OutputError
from publish.cli.verbs.common import EXIT_FAILURE, EXIT_OK, EXIT_USAGE, Invocation
from publish.domain.errors import PublishError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from publish.cli.output import Output

VERSION = Flag("version", boolean, "", "print the version", default="false")


def main(arguments: Sequence[str], env: Mapping[str, str], output: Output, started: float) -> int:
    """Does what the command line asks for; returns the exit status (cli.5). Raises no Exception.

    `arguments` come without the program's name; `started` is the moment of `time.monotonic`, in
    seconds, from which `-timeout` counts.
    """
    try:
        status = _dispatch(arguments, env, output, started)
        output.close()
    except OutputError as error:
        output.log(str(error))
        return EXIT_FAILURE
    except Exception as error:  # noqa: BLE001  (unforeseen; a user gets no traceback)
        from publish.cli.messages import describe_internal_error

        output.log(describe_internal_error(error))
        return EXIT_FAILURE
    return status


def _dispatch(arguments: Sequence[str], env: Mapping[str, str], output: Output, started: float) -> int:
    usage, topic = "publish VERB [flags] [positionals]", ""
    try:
        name, rest = _split_verb(arguments)
        if name not in verbs.NAMES:
            return _help_or_version(name, rest, output)
        verb = verbs.load(name)
        usage, topic = verb.usage, name
        line = goflag.parse(verb.flags, rest, env)
        verb.check(line)
        return _run(Invocation(verb, line, env, output, started))
    except HelpRequested:
        return _help_or_version("help", [topic] if topic else [], output)
    except UsageError as error:
        from publish.domain.root import without_userinfo  # start-up: most runs have no usage error

        # It quotes its value last, which may be a URL with a password (cli.9).
        output.log(without_userinfo(str(error)))
        output.log(f"usage: {usage}")
        output.log(f"run 'publish help{' ' * bool(topic)}{topic}' for details")
        return EXIT_USAGE


def _split_verb(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The verb and what follows it, or `-version`."""
    try:
        line = goflag.parse((VERSION,), arguments, {})
    except UsageError as error:
        raise UsageError(f"put the verb before its flags: {error}") from error
    if line[VERSION]:
        return "-version", ()
    if not line.positionals:
        raise UsageError("no verb given")
    return line.positionals[0], line.positionals[1:]


def _help_or_version(name: str, arguments: Sequence[str], output: Output) -> int:
    """Prints what `-version` or `help [VERB]` asks for. Raises UsageError for any other word."""
    if name == "-version":
        output.print_result(f"publish {__version__}".encode())
        return EXIT_OK
    if name != "help":
        raise UsageError(f"unknown verb{goflag.suggestion(name, verbs.NAMES)}: {name}")
    topics = goflag.parse((), arguments, {}).positionals
    if len(topics) > 1:
        raise UsageError(f"help takes one verb: {' '.join(topics)}")

    from publish.cli import help as help_text  # start-up: no verb needs it

    if not topics or topics[0] == "help":
        output.print_result(help_text.overview().encode())
    elif topics[0] in verbs.NAMES:
        output.print_result(help_text.verb_help(verbs.load(topics[0])).encode())
    else:
        raise UsageError(f"unknown verb{goflag.suggestion(topics[0], verbs.NAMES)}: {topics[0]}")
    return EXIT_OK


def _run(invocation: Invocation) -> int:
    try:
        return invocation.verb.run(invocation)
    except UsageError:
        raise
    except PublishError as error:
        from publish.cli.messages import log_error  # start-up: most runs succeed

        log_error(invocation, error)
        return EXIT_FAILURE
