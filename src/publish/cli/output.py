"""The two standard streams: an answer is written whole or OutputError is raised; a note is one line and never fails.

No secret that was made known here reaches stderr, whoever wrote it into a text (F9).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publish.domain.redaction import Redactor

# C0, DEL and C1, and the two characters that are line ends to Unicode: a note stays one line,
# and what a name holds cannot drive a terminal.
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    # The bytes of C1 where they are not UTF-8, as surrogates: some terminals act on them (ECMA-48).
    **{0xDC00 + code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class OutputError(Exception):
    """An answer did not reach stdout; the text says why."""


class Output:
    """Where answers and notes go. Nothing is buffered."""

    def __init__(self, stdout: int = 1, stderr: int = 2) -> None:
        """`stdout`, `stderr`: file descriptors."""
        self._stdout = stdout
        self._stderr = stderr
        self._answered = False
        self._shown = 0
        self._concealed: Redactor | None = None

    def conceal(self, *secrets: str) -> None:
        """From now on, to the end of the process, these are struck out of all that goes to stderr."""
        if self._concealed is None:
            from publish.domain.redaction import Redactor  # noqa: PLC0415  (start-up: a directory has no secrets)

            self._concealed = Redactor()
        self._concealed.add(secrets)

    @property
    def on_terminal(self) -> bool:
        """Whether somebody watches stderr."""
        return os.isatty(self._stderr)

    def answer(self, line: bytes) -> None:
        """Writes a line to stdout. Raises OutputError."""
        self.erase()
        self._answered = True
        try:
            _write(self._stdout, line + b"\n")
        except OSError as error:
            raise _unwritable(error) from error

    def finish(self) -> None:
        """Closes stdout if there was an answer: NFS, for one, tells of a full disk only then. Raises OutputError."""
        if not self._answered:
            return
        self._answered = False
        try:
            os.close(self._stdout)
        except OSError as error:
            raise _unwritable(error) from error

    def note(self, text: str) -> None:
        """Writes one line to stderr, or does not: where nobody can be told, nobody is."""
        self.erase()
        self._tell(b"publish: " + self._line(text) + b"\n")

    def show(self, text: str) -> None:
        """Shows `text` on the terminal in place of what was shown before, until anything else is written."""
        line = self._line(text)
        self._tell(b"\r\x1b[Kpublish: " + line)
        self._shown = len(line)

    def erase(self) -> None:
        """Takes back what `show` has left on the terminal."""
        if self._shown:
            self._shown = 0
            self._tell(b"\r\x1b[K")

    def _line(self, text: str) -> bytes:
        return escape(text if self._concealed is None else self._concealed.strike(text))

    def _tell(self, line: bytes) -> None:
        with suppress(OSError):
            _write(self._stderr, line)


def escape(text: str) -> bytes:
    """Text for one line of stderr: control characters spelled out, bytes that are not UTF-8 as they were."""
    plain = text.translate(_ESCAPES)
    try:
        return plain.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return plain.encode("utf-8", "backslashreplace")


def _unwritable(error: OSError) -> OutputError:
    return OutputError(f"cannot write to stdout: {os.strerror(error.errno or 0)}")


def _write(descriptor: int, line: bytes) -> None:
    while line:
        try:
            line = line[os.write(descriptor, line) :]
        except BlockingIOError:  # somebody who shares it made it non-blocking
            import select  # noqa: PLC0415  (as good as never needed)

            select.select([], [descriptor], [])
