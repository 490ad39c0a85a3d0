"""Runs one command as a child, passes signals on to it and waits for it (run.3, run.4).

The signals are blocked and taken one by one with sigwaitinfo(2), which says who sent them. Only the
thread that calls `wait` signals the command or reaps it, so its process id is never another's.
"""

from __future__ import annotations

import errno
import os
import signal
from math import inf
from time import monotonic

from publish.cli.first_process import SI_KERNEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
_ENDING = (signal.SIGINT, signal.SIGTERM)
_AWAITED = (*_PASSED_ON, signal.SIGCHLD)
# What Python ignores on its own account; a command expects the default.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_FOREVER_SECONDS = 10.0**8
KILL_AFTER_SECONDS = 60.0
NOT_EXECUTABLE, NOT_FOUND = 126, 127


class CannotStart(Exception):
    """The command was not started."""

    def __init__(self, status: int, why: str) -> None:
        """`status`: the exit status that a shell gives it (POSIX, XCU 2.8.2)."""
        super().__init__(why)
        self.status = status


class Supervisor:
    """A command that runs."""

    def __init__(self, command: list[bytes], env: Mapping[bytes, bytes], log: Callable[[str], None]) -> None:
        """Starts it with this process's streams, other inherited descriptors and signal mask. Raises CannotStart.

        `log` is told of a signal that the kernel refuses to deliver: a command may run as another user (kill(2)).
        """
        self._log = log
        # A parent may have left it ignored: children would then end unseen (wait(2)).
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
        try:
            self._child = _spawn(command, env, mask)
        except CannotStart:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            raise
        self._status: int | None = None
        self._is_asked_to_end = False
        self._is_told_to_end = False
        self._kill_at = inf

    def end(self) -> None:
        """Has the command ended: SIGTERM, and SIGKILL after a minute. May be called on any thread."""
        self._is_asked_to_end = True
        self.wake()

    def wake(self) -> None:
        """Makes a `wait` on another thread look again."""
        os.kill(os.getpid(), signal.SIGCHLD)

    def wait(self) -> int:
        """Returns the command's exit status: 128 and the number if a signal ended it."""
        while True:
            number = self._next_signal(self._kill_at - monotonic())
            if self._reap():
                assert self._status is not None
                return self._status
            if number is not None:
                self._send(number)
            self._end_if_asked()

    def wait_after(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """After the command: returns whether `is_done` came true in time. A second SIGINT or SIGTERM ends publish."""
        until = monotonic() + seconds
        is_warned = False
        while not is_done():
            remaining = until - monotonic()
            if remaining <= 0:
                return False
            number = self._next_signal(remaining)
            self._reap()
            if number in _ENDING:
                if is_warned:
                    os._exit(128 + number)
                is_warned = True
        return True

    def _next_signal(self, seconds: float) -> int | None:
        """A signal that is meant for the command; None: anything else happened, or `seconds` have passed."""
        received = signal.sigtimedwait(_AWAITED, min(max(seconds, 0), _FOREVER_SECONDS))
        if received is None or received.si_signo == signal.SIGCHLD:
            return None
        if received.si_signo == signal.SIGINT and received.si_code == SI_KERNEL and self._shares_the_terminal():
            return None
        return received.si_signo

    def _shares_the_terminal(self) -> bool:
        """Whether a terminal's signals reach the command as they reach this process."""
        return self._status is None and os.getpgid(self._child) == os.getpgrp()

    def _reap(self) -> bool:
        """Takes the command's status if it has ended; returns whether it has."""
        if self._status is None:
            child, status = os.waitpid(self._child, os.WNOHANG)
            if child:
                code = os.waitstatus_to_exitcode(status)
                self._status = code if code >= 0 else 128 - code
        return self._status is not None

    def _end_if_asked(self) -> None:
        if self._is_asked_to_end and not self._is_told_to_end:
            self._is_told_to_end = True
            self._kill_at = monotonic() + KILL_AFTER_SECONDS
            self._send(signal.SIGTERM)
        elif monotonic() >= self._kill_at:
            # Once: what waits for a dead disk ends only when the disk answers.
            self._kill_at = inf
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        try:
            os.kill(self._child, number)
        except PermissionError as error:
            name = signal.Signals(number).name
            self._log(f"run: cannot pass {name} on to COMMAND ({os.strerror(error.errno or 0)}), which goes on")


def _spawn(command: list[bytes], env: Mapping[bytes, bytes], mask: set[int | signal.Signals]) -> int:
    """Starts the first program of this name on PATH. Raises CannotStart."""
    refusal = CannotStart(NOT_FOUND, os.strerror(errno.ENOENT))
    for program in _candidates(command[0], env):
        try:
            return os.posix_spawn(program, command, env, setsigmask=mask, setsigdef=_IGNORED_BY_PYTHON)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = CannotStart(NOT_EXECUTABLE, os.strerror(error.errno or 0))
            if error.errno != errno.EACCES:
                break
    raise refusal


def _candidates(name: bytes, env: Mapping[bytes, bytes]) -> list[bytes]:
    if not name:
        return []
    if b"/" in name:
        return [name]
    folders = env.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    return [(folder or b".") + b"/" + name for folder in folders]
