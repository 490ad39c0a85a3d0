"""A file that a reader sees whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress

from publish.domain.entry import to_text
from publish.domain.errors import ConfigError


def replace_file(path: bytes, content: str) -> None:
    """Writes `content` under a temporary name and renames it to `path`. Raises ConfigError.

    A symbolic link stays one. A device or a pipe is refused, because the rename would put a file in its place.
    """
    target = os.path.realpath(path)
    temporary = b"%s.%s.tmp" % (target, os.urandom(8).hex().encode())
    if os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)):
        raise ConfigError(f"cannot write the picture (not a regular file): {to_text(path)}")
    try:
        # Exclusively: in a folder that others can write to, the name may be a link of theirs.
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(content)
        os.replace(temporary, target)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise ConfigError(f"cannot write the picture ({error.strerror}): {to_text(path)}") from error
