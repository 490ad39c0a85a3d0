"""What it costs to make a save durable: `sync_save` beside fsync(2) of one file after another.

Each row is a fresh save, just written (dirty) or synced before (clean). Ratios count: absolute
times are the disk's. `sync.py [FOLDER]` measures the filesystem of FOLDER.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from publish.adapters.posix import PosixStore

ROUNDS = 3
SAVES = (("20 files of 50 MB", 20, 50_000_000), ("2,000 files of 100 kB", 2_000, 100_000))
NOISE = os.urandom(1 << 20)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        root = Path(folder)
        store = PosixStore(bytes(root))
        ways: dict[str, Callable[[Path], None]] = {
            "sync_save": lambda save: store.sync_save(os.fsencode(save.name)),
            "fsync one by one": one_by_one,
        }
        print(f"{'a save of':24}{'state':8}{'':18}{'seconds':>8}{'ratio':>8}")
        for name, count, size in SAVES:
            measure(root, name, count, size, ways)


def measure(root: Path, name: str, count: int, size: int, ways: dict[str, Callable[[Path], None]]) -> None:
    times: dict[tuple[str, str], list[float]] = {}
    # The ways in turn, so that what else the disk does meets all of them.
    for _ in range(ROUNDS):
        for way, sync in ways.items():
            save = write(root, count, size)
            for state in ("dirty", "clean"):
                began = time.perf_counter()
                sync(save)
                times.setdefault((state, way), []).append(time.perf_counter() - began)
            remove(save)
    for (state, way), taken in sorted(times.items(), reverse=True):
        median = statistics.median(taken)
        base = statistics.median(times[state, "sync_save"])
        print(f"{name:24}{state:8}{way:18}{median:8.3f}{median / base:8.1f}")


def write(root: Path, count: int, size: int) -> Path:
    save = root / "save"
    save.mkdir()
    for number in range(count):
        with (save / f"{number:04}").open("wb") as file:
            for start in range(0, size, len(NOISE)):
                file.write(NOISE[: size - start])
    return save


def one_by_one(save: Path) -> None:
    for path in (*save.iterdir(), save, save.parent):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def remove(save: Path) -> None:
    for path in save.iterdir():
        path.unlink()
    save.rmdir()


if __name__ == "__main__":
    main()
