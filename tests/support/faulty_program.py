"""The program with a deliberate fault: `python faulty_program.py FAULT WORD…` leaves out one kind of sync.

It shows that the tests of power loss see what they are there for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

_sync = os.fsync
_open = os.open
_taken = False


def _path(file: int) -> str:
    return os.readlink(f"/proc/self/fd/{file}")


def _is_root(file: int) -> bool:
    return os.path.isdir(f"{_path(file)}/exec")


def _is_log(file: int) -> bool:
    return os.path.basename(_path(file)) == "pub"


def _none(_: int) -> bool:
    return False


# Each fault: whether a sync is left out.
FAULTS: dict[str, Callable[[int], bool]] = {
    "the log's folder is not synced": _is_log,
    "the root is not synced": _is_root,
    "already published is said before the sync": lambda _: _taken,
    "nothing is synced after the marker is removed": lambda file: "/checkpoint-" in _path(file),
    "nothing is synced after the entries are removed": lambda file: _is_log(file) and sys.argv[1] == "prune",
    "the records' folder is not synced": lambda file: os.path.basename(_path(file)) == "prune",
    "nothing is synced after a save is removed": lambda file: "/exec" in _path(file),
}


def main() -> None:
    from publish.__main__ import run  # noqa: PLC0415  (puts the process in order on being imported)

    fault = FAULTS.get(sys.argv.pop(1), _none)

    def sync(file: int) -> None:
        if not fault(file):
            _sync(file)

    def opened(*words: object, **more: object) -> int:
        global _taken  # noqa: PLW0603  (one process, one verb)
        try:
            return _open(*words, **more)  # type: ignore[arg-type]  # handed on as it came
        except FileExistsError:
            _taken = True
            raise

    for name, call in ("fsync", sync), ("open", opened):
        setattr(os, name, call)
    run()


if __name__ == "__main__":
    main()
