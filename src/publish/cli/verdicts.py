"""The verdict on a save as one line of text, for the verbs that verify."""

from __future__ import annotations

from publish.domain.entry import to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot
    from publish.cli.output import Output
    from publish.cli.verbs.common import Invocation
    from publish.domain.root import Root
    from publish.domain.verify import SaveChecker
    from publish.domain.wholeness import Verdict


def describe(root: Root, path: bytes, verdict: Verdict) -> str:
    """`whole SAVE` or `broken SAVE: FILE: WHY`, with SAVE as resolve prints it (verify.1)."""
    save = to_text(root.render(path))
    return f"whole {save}" if verdict.is_whole else f"broken {save}: {describe_faults(verdict)}"


def describe_faults(verdict: Verdict) -> str:
    """The first fault of a save that is not whole, and how many more there are."""
    first, *more = verdict.faults
    why = f"{to_text(first.file)}: {first.why}" if first.file else first.why
    return f"{why} (and {len(more)} more)" if more else why


def save_checker(invocation: Invocation, opened: OpenRoot) -> SaveChecker:
    """What `-verify` asks. Each save that is not whole is named on stderr."""
    from publish.domain.verify import SaveChecker  # start-up: only with -verify

    def on_verdict(path: bytes, verdict: Verdict) -> None:
        log_unread(invocation.output, opened.root, path, verdict)
        if not verdict.is_whole:
            invocation.output.log(describe(opened.root, path, verdict))

    return SaveChecker(opened.store, opened.parallel, on_verdict)


def log_unread(output: Output, root: Root, path: bytes, verdict: Verdict) -> None:
    """Names the metadata that is too large to be read."""
    for file in verdict.unread:
        output.log(f"over 64 MiB and not read: {to_text(root.render(path + b'/' + file))}")
