"""A real filesystem in an image on a loop device, whose power can be cut. Needs root and loop devices."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from pathlib import Path

# XFS_IOC_GOINGDOWN, which ext4 and f2fs take too: _IOR('X', 125, __u32). Nothing that is not on the disk gets there.
_SHUTDOWN = 0x8004587D
_NOTHING_IS_FLUSHED = 2

# Each with the smallest size, in MiB, that its mkfs makes.
SIZES = {"ext4": 16, "xfs": 300}


class DiskImage:
    """A filesystem of one kind, made afresh."""

    def __init__(self, kind: str, folder: Path) -> None:
        """Makes the image in `folder`, and mounts it. Raises CalledProcessError where the machine cannot."""
        self._image = folder / f"{kind}.img"
        self.path = folder / kind
        self.path.mkdir()
        with self._image.open("wb") as image:
            image.truncate(SIZES[kind] << 20)
        _run(f"mkfs.{kind}", "-q", str(self._image))
        self._mount()

    def sync(self) -> None:
        """Puts all that was written on the disk."""
        _run("sync", "-f", str(self.path))

    def cut(self) -> None:
        """Cuts the power: from now on every call fails with EIO."""
        mountpoint = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(mountpoint, _SHUTDOWN, struct.pack("I", _NOTHING_IS_FLUSHED))
        finally:
            os.close(mountpoint)

    def restart(self) -> None:
        """Mounts it again after a cut, as a machine does that comes up. Nothing may hold a file open on it."""
        _run("umount", str(self.path))
        self._mount()

    def close(self) -> None:
        """Unmounts and removes it."""
        _run("umount", "-l", str(self.path))
        self._image.unlink()

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
