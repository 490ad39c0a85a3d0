"""A file that a reader sees whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from publish.domain.entry import to_text
from publish.domain.errors import ConfigError

# As many as Linux follows (path_resolution(7)).
_MAX_LINKS = 40


def replace_file(path: bytes, content: str) -> None:
    """Writes `content` under a temporary name and renames it to `path`. Raises ConfigError.

    A symbolic link stays one. A device or a pipe is refused, because the rename would put a file in its place.
    """
    temporary = b""
    try:
        target = _behind_links(path)
        if os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)):
            raise ConfigError(f"cannot write the picture (not a regular file): {to_text(path)}")
        temporary = b"%s.%s.tmp" % (target, os.urandom(8).hex().encode())
        # Exclusively: in a folder that others can write to, the name may be a link of theirs.
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(content)
        os.replace(temporary, target)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise ConfigError(f"cannot write the picture ({error.strerror}): {to_text(path)}") from error


def _behind_links(path: bytes) -> bytes:
    """Where the symbolic link `path` leads; `path` itself if it is not one. Raises ConfigError and OSError.

    Another user's link is not followed: in a folder that they may write to, it could lead to any file of this user.
    The kernel refuses that in /tmp for open(2), but not for the rename (proc_sys_fs(5), protected_symlinks).
    """
    for _ in range(_MAX_LINKS):
        target = _target(path)
        if target is None:
            return path
        path = os.path.join(os.path.dirname(path), target)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _target(path: bytes) -> bytes | None:
    """What the symbolic link `path` holds; None: it is not one, or not there. Raises ConfigError and OSError.

    The link itself is opened, so that its owner is the owner of what is followed (open(2), O_PATH).
    """
    try:
        link = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(link)
        if not stat.S_ISLNK(status.st_mode):
            return None
        if status.st_uid not in (os.geteuid(), 0):
            raise ConfigError(
                f"cannot write the picture (a symbolic link of another user, uid {status.st_uid}): {to_text(path)}"
            )
        return os.readlink(b"", dir_fd=link)
    finally:
        os.close(link)
