from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from publish.cli import report
from publish.cli.output import Output, OutputError, escape
from publish.cli.report import Words
from publish.domain.entry import Entry
from publish.domain.errors import PermanentFault
from publish.domain.root import PosixRoot, S3Root


class Screen(NamedTuple):
    """Two ends of a terminal: what is written to `there` can be read from `here`."""

    here: int
    there: int

    def seen(self) -> bytes:
        os.set_blocking(self.here, False)
        try:
            return os.read(self.here, 1 << 16)
        except BlockingIOError:
            return b""


@pytest.fixture
def screen() -> Iterator[Screen]:
    pair = Screen(*pty.openpty())
    yield pair
    os.close(pair.here)
    os.close(pair.there)


@pytest.fixture
def nowhere() -> Iterator[int]:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


def test_an_answer_that_cannot_be_written_is_an_error(nowhere: int) -> None:
    """F7"""
    full = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OutputError, match="cannot write to stdout: No space left on device"):
        Output(full, nowhere).answer(b"answer")
    os.close(full)


def test_a_note_that_cannot_be_written_is_nobodys_fault(nowhere: int) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    Output(nowhere, full).note("hello")
    os.close(full)
    Output(nowhere, full).note("hello")


def test_stdout_is_closed_at_the_end_and_what_closing_says_counts(nowhere: int) -> None:
    """F7: a full disk behind NFS shows when the file is closed."""
    descriptor = os.dup(nowhere)
    output = Output(descriptor, nowhere)
    output.answer(b"answer")
    os.close(descriptor)
    with pytest.raises(OutputError, match="Bad file descriptor"):
        output.finish()


def test_a_stdout_that_nothing_was_written_to_is_left_alone(nowhere: int) -> None:
    descriptor = os.dup(nowhere)
    Output(descriptor, nowhere).finish()
    os.close(descriptor)


def test_an_answer_waits_for_a_pipe_that_takes_no_more(nowhere: int, tmp_path: Path) -> None:
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
    Output(there, nowhere).answer(line)
    os.close(there)
    assert os.waitpid(child, 0)[1] == 0


def test_a_note_is_one_line_of_what_can_be_seen() -> None:
    """F5"""
    controls = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)))
    assert len(escape(controls).decode().splitlines()) == 1
    assert escape(controls).decode().isprintable()
    assert escape("a\nb\tc\r\x1b\x7f\x9b") == rb"a\nb\tc\r\x1b\x7f\x9b"


def test_a_note_gives_bytes_back_as_they_were() -> None:
    """L3"""
    assert escape("é\udcff") == b"\xc3\xa9\xff"
    # A byte of C1 that is no UTF-8 would still drive a terminal.
    assert escape("\udc9b31m") == rb"\x9b31m"
    assert escape("\ud800 é") == b"\\ud800 \xc3\xa9"


def test_no_secret_that_was_made_known_reaches_stderr(tmp_path: Path, nowhere: int, screen: Screen) -> None:
    """F9: in a note and on the terminal, the oldest too"""
    err = tmp_path / "err"
    with err.open("wb") as stderr:
        output = Output(nowhere, stderr.fileno())
        output.note("a CANARY/1 before")
        output.conceal("CANARY/1", "")
        output.conceal("CANARY+2")
        output.note("CANARY%2F1 and CANARY\\u002b2")
    assert err.read_text().splitlines() == ["publish: a CANARY/1 before", "publish: … and …"]
    output = Output(nowhere, screen.there)
    output.conceal("CANARY")
    output.show("at CANARY")
    assert screen.seen().decode().endswith("publish: at …")


ENTRY = Entry.of(3, 7, b"exec/a/checkpoint-7")
ROOT = PosixRoot(b"/data/run")


def test_a_report_says_what_happened_in_the_words_of_the_contract(tmp_path: Path) -> None:
    """publish.4, prune.1, prune.4, prune.5"""
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        words = Words(Output(stdout.fileno(), stderr.fileno()), ROOT)
        words.published(ENTRY)
        words.already(ENTRY)
        words.removed(b"exec/a/checkpoint-5")
        words.left(b"exec/l/checkpoint-5", b"exec/l")
        words.failed(b"exec/a/checkpoint-6", PermanentFault("remove: Permission denied"))
        words.progress(1, 1000)
        Words(Output(stdout.fileno(), stderr.fileno()), S3Root("bucket", "run")).removed(b"exec/a")
    name = ENTRY.name.decode()
    assert out.read_text().splitlines() == [
        f"published {name} (epoch 3, step 7, /data/run/exec/a/checkpoint-7)",
        "removed /data/run/exec/a/checkpoint-5",
        "removed s3://bucket/run/exec/a",
    ]
    assert err.read_text().splitlines() == [
        f"publish: already published: {name} (epoch 3, step 7, /data/run/exec/a/checkpoint-7)",
        "publish: prune: left /data/run/exec/l/checkpoint-5 in place: /data/run/exec/l is a symbolic link",
        "publish: prune: cannot remove /data/run/exec/a/checkpoint-6: remove: Permission denied",
    ]


def test_a_long_removal_shows_its_progress_on_a_terminal(screen: Screen, nowhere: int) -> None:
    """prune.9"""
    words = Words(Output(nowhere, screen.there), ROOT)
    words.progress(1, 1000)
    assert b"publish: prune: 1 of 1000 saves" in screen.seen()
    words.removed(b"exec/a")
    assert screen.seen() == b"\r\x1b[K"
    words.progress(1000, 1000)
    assert screen.seen() == b""


def test_what_was_shown_is_erased_at_the_end(screen: Screen, nowhere: int) -> None:
    """prune.9"""
    words = Words(Output(nowhere, screen.there), ROOT)
    words.progress(1, 1000)
    screen.seen()
    words.progress(1000, 1000)
    assert screen.seen() == b"\r\x1b[K"


def test_a_short_removal_shows_no_progress(screen: Screen, nowhere: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """prune.9"""
    now = 100.0
    monkeypatch.setattr(report, "monotonic", lambda: now)
    words = Words(Output(nowhere, screen.there), ROOT)
    words.progress(1, 3)
    assert screen.seen() == b""
    now += 60
    words.progress(2, 3)
    assert b"2 of 3 saves" in screen.seen()


def test_progress_is_not_shown_more_often_than_an_eye_can_read(
    screen: Screen, nowhere: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "monotonic", lambda: 100.0)
    words = Words(Output(nowhere, screen.there), ROOT)
    words.progress(1, 1000)
    words.progress(2, 1000)
    assert screen.seen().count(b"of 1000") == 1
