"""What reaches stdout and stderr."""

from __future__ import annotations

import os
import pty
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from publish.cli import reporter
from publish.cli.output import Output, OutputError, escape
from publish.cli.reporter import Reporter
from publish.domain.entry import Entry
from publish.domain.errors import PermanentFault
from publish.domain.root import PosixRoot, S3Root


class Terminal(NamedTuple):
    """Two ends of a terminal: what is written to `there` can be read from `here`."""

    here: int
    there: int

    def output(self) -> bytes:
        os.set_blocking(self.here, False)
        try:
            return os.read(self.here, 1 << 16)
        except BlockingIOError:
            return b""


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    pair = Terminal(*pty.openpty())
    yield pair
    os.close(pair.here)
    os.close(pair.there)


@pytest.fixture
def nowhere() -> Iterator[int]:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


def test_a_result_that_cannot_be_written_is_an_error(nowhere: int) -> None:
    """cli.7"""
    full = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OutputError, match="cannot write to stdout: No space left on device"):
        Output(full, nowhere).print_result(b"answer")
    os.close(full)


def test_a_log_line_that_cannot_be_written_is_ignored(nowhere: int) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    Output(nowhere, full).log("hello")
    os.close(full)
    Output(nowhere, full).log("hello")


def test_an_error_on_closing_stdout_is_an_error(nowhere: int) -> None:
    """cli.7: a full disk behind NFS shows when the file is closed."""
    descriptor = os.dup(nowhere)
    output = Output(descriptor, nowhere)
    output.print_result(b"answer")
    os.close(descriptor)
    with pytest.raises(OutputError, match="Bad file descriptor"):
        output.close()


def test_stdout_stays_open_if_nothing_was_written_to_it(nowhere: int) -> None:
    descriptor = os.dup(nowhere)
    Output(descriptor, nowhere).close()
    os.close(descriptor)


def test_a_result_waits_for_a_full_pipe(nowhere: int, tmp_path: Path) -> None:
    """Another process that shares the pipe may have made it non-blocking."""
    here, there = os.pipe()
    os.set_blocking(there, False)
    line = b"x" * (1 << 20)
    child = os.fork()
    if child == 0:
        os.close(there)
        with os.fdopen(here, "rb") as pipe:
            os._exit(0 if pipe.read() == line + b"\n" else 1)
    os.close(here)
    Output(there, nowhere).print_result(line)
    os.close(there)
    assert os.waitpid(child, 0)[1] == 0


def test_a_log_line_is_one_printable_line() -> None:
    """cli.5"""
    controls = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)))
    assert len(escape(controls).decode().splitlines()) == 1
    assert escape(controls).decode().isprintable()
    assert escape("a\nb\tc\r\x1b\x7f\x9b") == rb"a\nb\tc\r\x1b\x7f\x9b"


def test_what_turns_text_or_is_not_shown_is_escaped() -> None:
    """cli.4: every character that Unicode calls a format character, and letters that have no picture."""
    formats = [char for char in map(chr, range(sys.maxunicode)) if unicodedata.category(char) == "Cf"]
    # These show: signs around the digits of some scripts, and those that join hieroglyphs.
    shown = {*map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD))}
    shown |= {*map(chr, range(0x13430, 0x13456))}
    for char in [*formats, "\u115f", "\u3164", "\uffa0", "\ufe0f", "\u034f", "\U000e0100"]:
        assert escape(char).isascii() != (char in shown), hex(ord(char))
    assert escape("a\u202eb\u200bc\xad\U000e0041") == rb"a\u202eb\u200bc\xad\U000e0041"


def test_a_log_line_keeps_bytes_that_are_not_utf_8() -> None:
    """layout.3"""
    assert escape("é\udcff") == b"\xc3\xa9\xff"
    # A byte of C1 outside UTF-8 would still control a terminal.
    assert escape("\udc9b31m") == rb"\x9b31m"
    assert escape("\ud800 é") == b"\\ud800 \xc3\xa9"


def test_no_registered_secret_reaches_stderr(tmp_path: Path, nowhere: int, terminal: Terminal) -> None:
    """cli.9: neither in a log line nor in progress, and older secrets too"""
    err = tmp_path / "err"
    with err.open("wb") as stderr:
        output = Output(nowhere, stderr.fileno())
        output.log("a CANARY/1 before")
        output.redact("CANARY/1", "")
        output.redact("CANARY+2")
        output.log("CANARY%2F1 and CANARY\\u002b2")
    assert err.read_text().splitlines() == ["publish: a CANARY/1 before", "publish: … and …"]
    output = Output(nowhere, terminal.there)
    output.redact("CANARY")
    output.show_progress("at CANARY")
    assert terminal.output().decode().endswith("publish: at …")


ENTRY = Entry.of(3, 7, b"exec/a/checkpoint-7")
ROOT = PosixRoot(b"/data/run")


def test_the_reporter_uses_the_words_of_the_contract(tmp_path: Path) -> None:
    """publish.4, prune.1, prune.4, prune.5, retract.1, retract.2"""
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        reports = Reporter(Output(stdout.fileno(), stderr.fileno()), ROOT, "prune")
        reports.published(ENTRY)
        reports.already_published(ENTRY)
        reports.removed(b"exec/a/checkpoint-5")
        reports.left_behind_link(b"exec/l/checkpoint-5", b"exec/l")
        reports.left_behind_links(3)
        reports.removal_failed(b"exec/a/checkpoint-6", PermanentFault("remove: Permission denied"))
        reports.progress(1, 1000)
        Reporter(Output(stdout.fileno(), stderr.fileno()), S3Root("bucket", "run"), "watch").removed(b"exec/a")
        retracting = Reporter(Output(stdout.fileno(), stderr.fileno()), ROOT, "retract")
        retracting.left_behind_link(b"exec/l/checkpoint-5", b"exec/l")
        retracting.stays(b"exec/a", "a path in it is needed")
        retracting.nothing_left()
    name = ENTRY.name.decode()
    assert out.read_text().splitlines() == [
        f"published {name} (epoch 3, step 7, /data/run/exec/a/checkpoint-7)",
        "removed /data/run/exec/a/checkpoint-5",
        "removed s3://bucket/run/exec/a",
    ]
    assert err.read_text().splitlines() == [
        f"publish: already published: {name} (epoch 3, step 7, /data/run/exec/a/checkpoint-7)",
        "publish: prune: left /data/run/exec/l/checkpoint-5 in place: /data/run/exec/l is a symbolic link",
        "publish: prune: symbolic links kept 3 saves in place, so their space is not freed",
        "publish: prune: cannot remove /data/run/exec/a/checkpoint-6: remove: Permission denied",
        "publish: retract: left /data/run/exec/l/checkpoint-5 in place: /data/run/exec/l is a symbolic link",
        "publish: retract: left /data/run/exec/a in place: a path in it is needed",
        "publish: warning: no publication is left, so the next execution starts from step 0",
    ]


def test_a_long_removal_shows_its_progress_on_a_terminal(terminal: Terminal, nowhere: int) -> None:
    """prune.9"""
    reports = Reporter(Output(nowhere, terminal.there), ROOT, "prune")
    reports.progress(1, 1000)
    assert b"publish: prune: 1/1000 checkpoints" in terminal.output()
    reports.removed(b"exec/a")
    assert terminal.output() == b"\r\x1b[K"
    reports.progress(1000, 1000)
    assert terminal.output() == b""


def test_progress_is_erased_at_the_end(terminal: Terminal, nowhere: int) -> None:
    """prune.9"""
    reports = Reporter(Output(nowhere, terminal.there), ROOT, "prune")
    reports.progress(1, 1000)
    terminal.output()
    reports.progress(1000, 1000)
    assert terminal.output() == b"\r\x1b[K"


def test_a_short_removal_shows_no_progress(terminal: Terminal, nowhere: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """prune.9"""
    now = 100.0
    monkeypatch.setattr(reporter, "monotonic", lambda: now)
    reports = Reporter(Output(nowhere, terminal.there), ROOT, "prune")
    reports.progress(1, 3)
    assert terminal.output() == b""
    now += 60
    reports.progress(2, 3)
    assert b"2/3 checkpoints" in terminal.output()


def test_progress_is_shown_at_most_ten_times_a_second(
    terminal: Terminal, nowhere: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "monotonic", lambda: 100.0)
    reports = Reporter(Output(nowhere, terminal.there), ROOT, "prune")
    reports.progress(1, 1000)
    reports.progress(2, 1000)
    assert terminal.output().count(b"/1000") == 1
