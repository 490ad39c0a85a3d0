"""A running test machine, emulated by QEMU; commands go in and come out through a shared folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from tests.support.nfs_image import Image

_MEMORY_MIB = 1024
_BOOT = 600.0  # seconds; half a minute on a machine that is not busy


class Machine:
    """One machine. What it writes to its disk is gone when it ends."""

    def __init__(self, image: Image, share: Path) -> None:
        """Boots it. `share` is the folder that it sees as /host."""
        self._share = share
        (share / "jobs").mkdir()
        self._jobs = 0
        # Emulated, not KVM: a hosted runner that is a virtual machine itself may offer a KVM that does not work.
        self._qemu = subprocess.Popen(
            [
                *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(_MEMORY_MIB)),
                *("-nodefaults", "-no-reboot", "-display", "none", "-serial", f"file:{share / 'console'}"),
                *("-kernel", str(image.kernel), "-initrd", str(image.initrd)),
                *("-append", "root=/dev/vda rw init=/sbin/guest-init console=ttyS0 quiet panic=-1"),
                *("-drive", f"file={image.disk},format=raw,if=virtio,snapshot=on"),
                *("-virtfs", f"local,path={share},mount_tag=host,security_model=none,multidevs=remap"),
            ]
        )
        end = monotonic() + _BOOT
        while not (share / "up").exists():
            if self._qemu.poll() is not None or monotonic() > end:
                raise SystemExit(f"the machine does not start:\n{(share / 'console').read_text(errors='replace')}")
            sleep(0.1)

    def run(self, script: str, limit: float) -> int:
        """Runs a shell script in the machine, and writes on what it says as it comes; its status.

        Raises TimeoutError after `limit` seconds.
        """
        self._jobs += 1
        job = self._share / "jobs" / str(self._jobs)
        job.with_suffix(".new").write_text(script)
        job.with_suffix(".new").rename(job.with_suffix(".sh"))
        out, status = job.with_suffix(".out"), job.with_suffix(".rc")
        shown = 0
        end = monotonic() + limit
        while True:
            ended = status.exists()
            said = out.read_bytes() if out.exists() else b""
            sys.stdout.buffer.write(said[shown:])
            sys.stdout.flush()
            shown = len(said)
            if ended:
                return int(status.read_text())
            if monotonic() > end or self._qemu.poll() is not None:
                raise TimeoutError(f"the machine's script takes more than {limit} s, or the machine has ended")
            sleep(0.2)

    def stop(self) -> None:
        """Switches it off."""
        self._qemu.kill()
        self._qemu.wait()


@contextmanager
def machine(image: Image, files: tuple[Path, ...]) -> Iterator[Machine]:
    """A machine that runs while the block does, with `files` in its /host."""
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            shutil.copy(file, folder)
        running = Machine(image, Path(folder))
        try:
            yield running
        finally:
            running.stop()
