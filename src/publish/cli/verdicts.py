"""What is said about a save that was looked at: its verdict as one line."""

from __future__ import annotations

from publish.domain.entry import to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.output import Output
    from publish.domain.root import Root
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


class VerdictLog:
    """Says on stderr which saves are broken, and which files were not read."""

    def __init__(self, output: Output, root: Root) -> None:
        self._output = output
        self._root = root

    def __call__(self, path: bytes, verdict: Verdict) -> None:
        """Is told each verdict."""
        self.log_unread(path, verdict)
        if not verdict.is_whole:
            self._output.log(describe(self._root, path, verdict))

    def log_unread(self, path: bytes, verdict: Verdict) -> None:
        """Names the metadata that is too large to be read."""
        for file in verdict.unread:
            self._output.log(f"over 64 MiB and not read: {to_text(self._root.render(path + b'/' + file))}")
