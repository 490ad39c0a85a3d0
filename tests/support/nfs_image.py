"""A Debian machine with an NFS server and client, made of Debian's packages: a kernel, an initrd and a disk image.

Needs root, `debootstrap` and e2fsprogs, and no network later on. It is made once and kept, since it takes minutes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[2]
GUEST = PROJECT / "tests" / "nfs" / "guest"

_RELEASE = "bookworm"
_PACKAGES = (
    "linux-image-amd64",
    "initramfs-tools",
    "zstd",
    "kmod",
    "iproute2",
    "procps",
    "strace",
    "python3",
    "nfs-kernel-server",
    "nfs-common",
    "rpcbind",
)
# Of the Python in that release; the host's has to be the same, so that binary wheels fit.
_PYTHON = (3, 11)
# What the tests import in the machine, and what that needs; at the versions of requirements-dev.txt.
_TEST_PACKAGES = (
    *("pytest", "pytest-timeout", "iniconfig", "packaging", "pluggy", "pygments"),
    *("hypothesis", "sortedcontainers"),
    *("cryptography", "cffi", "pycparser"),
)
_SIZE_MIB = 1400


class Image(NamedTuple):
    """What a machine boots from."""

    kernel: Path
    initrd: Path
    disk: Path


def image(cache: Path) -> Image:
    """The image in the folder `cache`; made there as far as it is missing or out of date."""
    made = Image(cache / "vmlinuz", cache / "initrd.img", cache / "root.img")
    stamp = cache / "stamp"
    wanted = _fingerprint()
    if stamp.exists() and stamp.read_text() == wanted:
        return made
    cache.mkdir(parents=True, exist_ok=True)
    root = cache / "root"
    _install_debian(root)
    _install_python_packages(root)
    shutil.copy(GUEST / "init", root / "sbin" / "guest-init")
    shutil.copyfile(_only(root / "boot", "vmlinuz-*"), made.kernel)
    shutil.copyfile(_only(root / "boot", "initrd.img-*"), made.initrd)
    made.disk.unlink(missing_ok=True)
    _run("mke2fs", "-q", "-t", "ext4", "-L", "root", "-d", str(root), str(made.disk), f"{_SIZE_MIB}M")
    stamp.write_text(wanted)
    return made


def _fingerprint() -> str:
    """Changes with whatever the image is made of."""
    parts = [
        Path(__file__).read_bytes(),
        (GUEST / "init").read_bytes(),
        *((PROJECT / name).read_bytes() for name in ("requirements.txt", "requirements-dev.txt")),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _install_debian(root: Path) -> None:
    if (root / ".debian").exists():
        return
    shutil.rmtree(root, ignore_errors=True)
    _run("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _RELEASE, str(root), _mirror())
    for folder in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"):
        shutil.rmtree(root / folder)
    # The initrd needs the disk and its filesystem only, and is read faster so.
    settings = root / "etc/initramfs-tools"
    (settings / "modules").write_text("virtio_pci\nvirtio_blk\next4\n")
    configured = (settings / "initramfs.conf").read_text()
    configured = re.sub(r"^MODULES=.*", "MODULES=list", configured, flags=re.MULTILINE)
    configured = re.sub(r"^COMPRESS=.*", "COMPRESS=zstd", configured, flags=re.MULTILINE)
    (settings / "initramfs.conf").write_text(configured)
    _run("chroot", str(root), "update-initramfs", "-u", "-k", "all")
    (root / ".debian").touch()


def _install_python_packages(root: Path) -> None:
    if sys.version_info[:2] != _PYTHON:
        raise SystemExit(f"Debian {_RELEASE} has Python {_PYTHON}, so run this with the same: {sys.version_info[:2]}")
    site = root / "opt/site"
    shutil.rmtree(site, ignore_errors=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as tests:
        tests.write(_pinned(_TEST_PACKAGES))
        tests.flush()
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(site)]
        _run(*pip, "-r", str(PROJECT / "requirements.txt"), "-r", tests.name)
    packages = root / "usr/lib/python3/dist-packages"
    (packages / "site.pth").write_text("/opt/site\n/opt/publish/src\n")
    _run("chroot", str(root), "python3", "-m", "compileall", "-q", "/opt/site", "/usr/lib/python3.11")


def _pinned(names: Sequence[str]) -> str:
    """The lines of requirements-dev.txt for these packages, with their hashes."""
    blocks = re.split(r"^(?=[\w.-]+==)", (PROJECT / "requirements-dev.txt").read_text(), flags=re.MULTILINE)
    return "".join(block for block in blocks if block.partition("==")[0] in names)


def _mirror() -> str:
    """Where this machine's own packages come from; else Debian's."""
    for name in ("sources.list.d/debian.sources", "sources.list"):
        path = Path("/etc/apt", name)
        text = path.read_text() if path.exists() else ""
        if found := re.search(r"^(?:URIs: *|deb +(?:\[.*?\] +)?)(\S+)", text, re.MULTILINE):
            return found[1]
    return "http://deb.debian.org/debian"


def _only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def _run(*words: str) -> None:
    subprocess.run(words, check=True, env=os.environ | {"LC_ALL": "C"})
