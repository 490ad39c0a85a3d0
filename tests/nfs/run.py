"""Runs the NFS tests, and the contract of every store, in an emulated machine with a real NFS server and client.

`python -m tests.nfs.run [PYTEST ARGUMENT…]`. The machine is made once and kept in the folder that
PUBLISH_TEST_NFS_CACHE names (about 3 GB). Needs root, and Debian's qemu-system-x86, debootstrap and e2fsprogs.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.nfs_image import GUEST, PROJECT, image
from tests.support.nfs_vm import machine

_LIMIT = 3600.0  # seconds


def main() -> int:
    """Prints what pytest says in the machine, and ends with its status."""
    cache = os.environ.get("PUBLISH_TEST_NFS_CACHE")
    if not cache:
        raise SystemExit("set PUBLISH_TEST_NFS_CACHE to a folder outside the repository, where 3 GB are kept")
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project.tar")
        kept = ["src", "tests", "conftest.py", "pyproject.toml", "README.md", "docs"]
        subprocess.run(["tar", "-C", PROJECT, "--exclude=__pycache__", "-cf", project, *kept], check=True)
        with machine(image(Path(cache)), (project, GUEST / "mounts.sh", GUEST / "test.sh")) as running:
            script = f"set -e\n. /host/mounts.sh\nexec bash /host/test.sh {shlex.join(sys.argv[1:])}\n"
            return running.run(script, _LIMIT)


if __name__ == "__main__":
    sys.exit(main())
