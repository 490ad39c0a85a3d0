"""The program on a directory that hangs: `python hanging_program.py FIFO WORD…` hangs in a listing while FIFO is there.

The thread that lists waits in the kernel as on a hard NFS mount whose server is away: a signal that the process
handles does not wake it, only the end of the process does (TASK_KILLABLE, state D of proc(5)). vfork(2) waits so for
its child, and the child waits here for a writer of FIFO.
"""

from __future__ import annotations

import ctypes
import os
import sys


def main() -> None:
    from publish.__main__ import run  # noqa: PLC0415  (puts the process in order on being imported)

    fifo = sys.argv.pop(1)
    scandir = os.scandir

    def hanging(folder: int) -> object:
        if os.path.exists(fifo):
            _hang(os.fsencode(fifo))
        return scandir(folder)

    setattr(os, "scandir", hanging)  # noqa: B010  (mypy knows the real one by its signature)
    run()


def _hang(fifo: bytes) -> None:
    """posix_spawn(3) returns when its child, which uses this thread's memory, has opened its files."""
    libc = ctypes.CDLL(None)
    actions = ctypes.create_string_buffer(256)
    libc.posix_spawn_file_actions_init(actions)
    libc.posix_spawn_file_actions_addopen(actions, 0, fifo, os.O_RDONLY, 0)
    words = (ctypes.c_char_p * 2)(b"/bin/true", None)
    libc.posix_spawn(ctypes.byref(ctypes.c_int()), words[0], actions, None, words, words)


if __name__ == "__main__":
    main()
