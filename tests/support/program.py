"""The program as a test calls it: in this process for its words, or installed, as a user's shell starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from publish.cli.app import main
from publish.cli.output import Output

PROGRAM = str(Path(sys.executable).with_name("publish"))
# What a login gives at least; nothing of the test runner's own environment.
CLEAN = {"PATH": os.defpath, "HOME": "/", "LANG": "C.UTF-8"}

# Seconds.
_PATIENCE = 60.0

# What a watch says of itself in every run (watch.8).
_NARRATION = re.compile(
    rb"publish: watch: (?:watching|stopped|ended|[0-9]+ saves? (?:is|are) not complete|.* never appeared)"
)

Word = str | bytes | Path


def without_narration(err: bytes) -> bytes:
    """The lines of stderr but for those in which a watch tells what it does."""
    return b"".join(line for line in err.splitlines(keepends=True) if not _NARRATION.match(line))


RETRYING = " failed, retrying for up to "


class Result(NamedTuple):
    status: int
    out: bytes
    err: bytes

    @property
    def notes(self) -> list[str]:
        """The lines of stderr, each of which must start as cli.4 says, without a watch's narration."""
        lines = without_narration(self.err).decode("utf-8", "surrogateescape").split("\n")
        assert lines.pop() == ""
        assert all(line.startswith("publish: ") for line in lines), self.err
        return [line.removeprefix("publish: ") for line in lines]

    @property
    def retries(self) -> list[str]:
        """The notes about requests that are retried."""
        return [note for note in self.notes if RETRYING in note]

    @property
    def messages(self) -> list[str]:
        """The other notes."""
        return [note for note in self.notes if RETRYING not in note]


def call(*words: Word, env: Mapping[str, str] | None = None) -> Result:
    """Runs `main` here."""
    arguments = [os.fsencode(word).decode("utf-8", "surrogateescape") for word in words]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status = main(arguments, env or {}, Output(os.dup(out.fileno()), err.fileno()), monotonic())
        out.seek(0)
        err.seek(0)
        return Result(status, out.read(), err.read())


def start(*words: Word, env: Mapping[str, str] | None = None, **options: object) -> subprocess.Popen[bytes]:
    """Starts the installed program, its streams in pipes unless `options` say otherwise.

    A program that hangs is killed after a minute, so that a test that waits for its words fails.
    """
    # Else the program would inherit that SIGINT is ignored where a shell runs the tests in its background.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]  # options of every kind
        [PROGRAM, *words], env=CLEAN | dict(env or {}), **(streams | options)
    )
    end = threading.Timer(_PATIENCE, process.kill)
    end.daemon = True
    end.start()
    return process


def run(*words: Word, env: Mapping[str, str] | None = None, **options: object) -> Result:
    """Runs the installed program to its end."""
    with start(*words, env=env, **options) as process:
        out, err = process.communicate()
    return Result(process.returncode, out or b"", err or b"")


def fill(pipe: int) -> None:
    """Writes to a pipe until it takes no more."""
    os.set_blocking(pipe, False)
    try:
        while True:
            os.write(pipe, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(pipe, True)


def until_it_waits_to_write(pid: int) -> None:
    """Returns when a thread waits in a write to its stdout (proc(5); 1 is write(2) on x86, 64 on ARM)."""
    while not any(_waits_to_write(call) for call in Path(f"/proc/{pid}/task").glob("*/syscall")):
        pass


def _waits_to_write(call: Path) -> bool:
    try:
        words = call.read_text().split()
    except OSError:
        return False  # the thread has ended
    return words[0] in {"1", "64"} and words[1] == "0x1"


def listens(pid: int) -> bool:
    """Whether a process handles SIGTERM (proc(5))."""
    caught = re.search(r"^SigCgt:\t(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert caught
    return bool(int(caught[1], 16) & 1 << (signal.SIGTERM - 1))
