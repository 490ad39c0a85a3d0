"""Files that the Linux NFS client keeps because a process still reads them. Mounts are read only if there is one."""

from __future__ import annotations

import os

# fs/nfs/unlink.c: a file that was removed while a process of this node had it open.
_PREFIX, _DIGITS, _HEX = b".nfs", 24, b"0123456789abcdefABCDEF"
_MOUNTS = "/proc/self/mountinfo"


def is_removed_but_open(name: bytes, directory: int) -> bool:
    """Whether `name` in the opened `directory` is a removed file that a process still reads (nfs.3)."""
    digits = name.removeprefix(_PREFIX)
    is_silly_name = name.startswith(_PREFIX) and len(digits) == _DIGITS and not digits.strip(_HEX)
    return is_silly_name and _is_on_nfs(os.fstat(directory).st_dev)


def _is_on_nfs(device: int) -> bool:
    """Whether the filesystem of a device number is NFS, by the table of mounts (proc_pid_mountinfo(5))."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                fields, _, kind = line.partition(" - ")
                if fields.split()[2] == number:
                    return kind.split()[0] in ("nfs", "nfs4")
    except OSError:
        return False
    return False
