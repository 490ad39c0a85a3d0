"""A file that is made exclusively: of any number of processes that try, on any node, one does."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from publish.adapters.posix.fds import Fsync
from publish.adapters.posix.root import identity

_CREATE_FLAGS = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_FILE_MODE = 0o666


def make_empty(directory: int, name: bytes) -> int | None:
    """The new file's descriptor; None: the name is taken (open(2), O_EXCL)."""
    try:
        return os.open(name, _CREATE_FLAGS, _FILE_MODE, dir_fd=directory)
    except FileExistsError:
        return None
    except PermissionError as error:
        if _is_taken(error, directory, name):
            return None
        raise


def make_with_content(scratch: int, directory: int, name: bytes, content: bytes, fsync: Fsync) -> int | None:
    """The new file's descriptor; None: the name is taken.

    The content is written and synced under a name of its own in the directory `scratch`, and that file
    then linked to `name`: no reader ever sees less than the whole (link(2)).
    """
    temporary = os.urandom(16).hex().encode()
    file = os.open(temporary, _CREATE_FLAGS, _FILE_MODE, dir_fd=scratch)
    try:
        _write(file, content)
        fsync(file)
        is_made = _try_link(file, scratch, temporary, directory, name)
    except BaseException:
        os.close(file)
        raise
    finally:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=scratch)
    if is_made:
        return file
    os.close(file)
    return None


def _try_link(file: int, scratch: int, temporary: bytes, directory: int, name: bytes) -> bool:
    """Links the file to the name; returns whether it has the name."""
    try:
        os.link(temporary, name, src_dir_fd=scratch, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        # On NFS a lost reply makes the client ask twice, and the second answer is about the first's work.
        return identity(os.fstat(file)) == identity(os.lstat(name, dir_fd=directory))
    except PermissionError as error:
        if _is_taken(error, directory, name):
            return False
        raise
    return True


def _is_taken(error: OSError, directory: int, name: bytes) -> bool:
    """Whether the refusal means that: sshfs refuses a name that is there with EPERM (nfs.7)."""
    if error.errno != errno.EPERM:
        return False
    with suppress(FileNotFoundError):
        os.lstat(name, dir_fd=directory)
        return True
    return False


def _write(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
