"""The root directory, opened once: whatever becomes of its path, every call works in the one directory."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from publish.adapters.posix.faults import ABSENT, NOT_THERE, STALE, to_fault
from publish.adapters.posix.fds import DIRECTORY, closing
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError
from publish.domain.light_typing import TypeVar

T = TypeVar("T")
Identity = tuple[int, int]


def identity(status: os.stat_result) -> Identity:
    """What tells one file from another, whatever its path: device and inode."""
    return status.st_dev, status.st_ino


def same_directory(one: bytes, other: bytes) -> bool:
    """Whether both paths lead to the same file. False if either cannot be examined."""
    with suppress(OSError):
        return os.path.samefile(one, other)
    return False


class RootDirectory:
    """A descriptor of the root; paths are relative to it. May be used by several threads at once."""

    def __init__(self, path: bytes, transient: Collection[int] = STALE) -> None:
        """`path` is absolute and may lead through links. `transient`: the errnos that are worth another attempt.

        Raises ConfigError unless the path leads to a directory (root.4).
        """
        self.path = path
        self._transient = transient
        self.fd = -1
        try:
            self.fd = _open(path)
        except OSError as error:
            raise self._gone() from error
        self._identity = identity(os.fstat(self.fd))

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def absolute(self, path: bytes) -> bytes:
        """The path for a message."""
        return os.path.join(self.path, path) if path else self.path

    def check(self) -> None:
        """Raises ConfigError if the root's path leads elsewhere by now, or nowhere."""
        try:
            status = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._gone() from error
        if not stat.S_ISDIR(status.st_mode):
            raise self._gone()
        self._require_same(status)

    def reopen(self) -> None:
        """Asks the server for the root again, so that what is looked up next does not come from a cache.

        On NFS, opening a directory is what makes the client ask (close-to-open, nfs(5)); stat(2) does
        not. The number of the descriptor stays, so that other threads go on with the fresh one.
        Raises ConfigError if the path leads elsewhere by now, or nowhere.
        """
        try:
            fresh = os.open(self.path, DIRECTORY)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._gone() from error
        with closing(fresh):
            self._require_same(os.fstat(fresh))
            os.dup2(fresh, self.fd, inheritable=False)

    def is_at(self, path: bytes) -> bool:
        """Whether the absolute `path` leads to the root's own directory, whatever links it goes through."""
        with suppress(OSError):
            return identity(os.stat(path)) == self._identity
        return False

    def look(self, path: bytes, act: Callable[[bytes, int], T]) -> T | None:
        """What `act(path, directory)` gives for a path below the root; None: nothing is there.

        Nothing is there only when the folder that would hold it has been opened afresh and looked
        into again: before that, the absence may come from this node's cache (nfs.2).
        """
        found = _unless(NOT_THERE, act, path or b".", self.fd)
        if found is not None:
            return found
        folder = self._fresh_parent(path)
        if folder is None:
            return None
        with closing(folder):
            return _unless(ABSENT, act, os.path.basename(path) or b".", folder)

    def _fresh_parent(self, path: bytes) -> int | None:
        """The folder that would hold `path`, each folder on the way opened afresh; None if there is none."""
        self.reopen()
        folder = os.dup(self.fd)
        for component in path.split(b"/")[:-1]:
            with closing(folder):
                try:
                    folder = os.open(component, DIRECTORY, dir_fd=folder)
                except OSError as error:
                    if error.errno in ABSENT:
                        return None
                    raise
        return folder

    @contextmanager
    def translate_errors(self, step: str, *, writes: bool = False) -> Iterator[None]:
        """Turns what the system refuses into the store's fault of `step`.

        The root's descriptor may itself be stale, after the server's restart: it is opened again
        for the next attempt, if it is still the same directory.
        """
        try:
            yield
        except OSError as error:
            if error.errno == errno.ESTALE:
                with suppress(OSError):
                    self.reopen()
            raise to_fault(step, error, self._transient, writes=writes) from error

    def is_transient(self, error: OSError) -> bool:
        """Whether the call is worth another attempt."""
        return error.errno in self._transient

    def _require_same(self, status: os.stat_result) -> None:
        if identity(status) != self._identity:
            raise ConfigError(f"the root was replaced by another directory while it was in use: {to_text(self.path)}")

    def _gone(self) -> ConfigError:
        # The shell expands a ~ only at the start of a word: not in -checkpoint=~/run, and not in quotes.
        tilde = " publish does not expand ~" if b"/~" in self.path else ""
        return ConfigError(f"the root is not there or not a directory (is it mounted?{tilde}): {to_text(self.path)}")


def _open(path: bytes) -> int:
    try:
        return os.open(path, DIRECTORY)
    except PermissionError:
        # Without permission to read it, what lies below is still there for those who may pass (open(2), O_PATH).
        return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _unless(errnos: Collection[int], act: Callable[[bytes, int], T], path: bytes, directory: int) -> T | None:
    try:
        return act(path, directory)
    except OSError as error:
        if error.errno in errnos:
            return None
        raise
