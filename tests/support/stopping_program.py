"""The program, stopped at an effect: `python stopping_program.py N WORD…` stops itself (SIGSTOP) after its Nth effect.

An effect is a call that changes the filesystem, syncs it, or says something. Effects are counted from 1 on.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps

EFFECTS = ("mkdir", "link", "rename", "unlink", "remove", "rmdir", "symlink", "fsync", "write")


def main() -> None:
    from publish.__main__ import run  # noqa: PLC0415  (puts the process in order on being imported)

    left = int(sys.argv.pop(1))

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        @wraps(call)
        def counting(*words: object, **more: object) -> object:
            result = call(*words, **more)
            count()
            return result

        return counting

    for name in EFFECTS:
        setattr(os, name, counted(getattr(os, name)))
    system_open = os.open

    @wraps(system_open)
    def opened(path: str, flags: int, *words: int, **more: int) -> int:
        file = system_open(path, flags, *words, **more)
        if flags & os.O_CREAT:
            count()
        return file

    setattr(os, "open", opened)  # noqa: B010  (mypy knows the real one by its signature)
    run()


if __name__ == "__main__":
    main()
