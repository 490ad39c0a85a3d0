"""stdout and stderr: a result is written whole or OutputError is raised; a log line is one line and never fails.

No secret that was registered here reaches stderr, whatever text it is in (cli.9).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.domain.redaction import Redactor

# Unicode's line ends, and characters that change the direction of text or are not shown at all (PropList and
# DerivedCoreProperties: Bidi_Control, Default_Ignorable_Code_Point).
_UNSEEN = (
    *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)),
    *(*range(0x2028, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
    *(*range(0xFFF0, 0xFFFC), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)),
    *(*range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0)),
)
# With C0, DEL and C1: a log line stays one line, and no name can send escape sequences to a terminal. C1 also as bytes
# that are not UTF-8, which are surrogates here: some terminals act on them (ECMA-48).
_ESCAPES = {code: ascii(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), *_UNSEEN)} | {
    0xDC00 + code: f"\\x{code:02x}" for code in range(0x80, 0xA0)
}


class OutputError(Exception):
    """A result did not reach stdout; the text says why."""


class Output:
    """Where results and log lines go. Nothing is buffered."""

    def __init__(self, stdout: int = 1, stderr: int = 2) -> None:
        """`stdout`, `stderr`: file descriptors."""
        self._stdout = stdout
        self._stderr = stderr
        self._has_results = False
        self._results_are_logged = False
        self._progress_shown = 0
        self._redactor: Redactor | None = None

    def redact(self, *secrets: str) -> None:
        """From now on, to the end of the process, these are replaced in everything that goes to stderr."""
        if self._redactor is None:
            from publish.domain.redaction import Redactor  # start-up: a directory has no secrets

            self._redactor = Redactor()
        self._redactor.add(secrets)

    def log_results(self) -> None:
        """From now on results are log lines: stdout belongs to another program (run.2)."""
        self._results_are_logged = True

    @property
    def stderr_isatty(self) -> bool:
        """Whether stderr is a terminal."""
        return os.isatty(self._stderr)

    def print_result(self, line: bytes) -> None:
        """Writes a line to stdout. Raises OutputError."""
        if self._results_are_logged:
            self.log(line.decode("utf-8", "surrogateescape"))
            return
        self.clear_progress()
        self._has_results = True
        try:
            _write(self._stdout, line + b"\n")
        except OSError as error:
            raise _write_error(error) from error

    def close(self) -> None:
        """Closes stdout if a result was printed: NFS reports a full disk only then. Raises OutputError."""
        if not self._has_results:
            return
        self._has_results = False
        try:
            os.close(self._stdout)
        except OSError as error:
            raise _write_error(error) from error

    def log(self, text: str) -> None:
        """Writes one line to stderr; write errors are ignored."""
        self.clear_progress()
        self._write_stderr(b"publish: " + self._line(text) + b"\n")

    def show_progress(self, text: str) -> None:
        """Shows `text` on the terminal in place of the last progress line, until anything else is written."""
        line = self._line(text)
        self._write_stderr(b"\r\x1b[Kpublish: " + line)
        self._progress_shown = len(line)

    def clear_progress(self) -> None:
        """Erases the progress line."""
        if self._progress_shown:
            self._progress_shown = 0
            self._write_stderr(b"\r\x1b[K")

    def _line(self, text: str) -> bytes:
        return escape(text if self._redactor is None else self._redactor.redact(text))

    def _write_stderr(self, line: bytes) -> None:
        try:
            _write(self._stderr, line)
        except OSError:
            return


def escape(text: str) -> bytes:
    """Text for one line of stderr: control characters escaped, bytes that are not UTF-8 unchanged."""
    plain = text.translate(_ESCAPES)
    try:
        return plain.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return plain.encode("utf-8", "backslashreplace")


def _write_error(error: OSError) -> OutputError:
    return OutputError(f"cannot write to stdout: {os.strerror(error.errno or 0)}")


def _write(descriptor: int, line: bytes) -> None:
    while line:
        try:
            line = line[os.write(descriptor, line) :]
        except BlockingIOError:  # another process that shares it made it non-blocking
            import select  # rare

            select.select([], [descriptor], [])
