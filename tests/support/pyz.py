"""The program as one file, built for a test, and the images that it is tried in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.support.containers import Image

TOP = Path(__file__).parents[2]


def build(target: Path, **env: str) -> Path:
    """What `make pyz` builds. Asks a package index."""
    subprocess.run([sys.executable, TOP / "tools" / "make_pyz.py", target], env=os.environ | env, check=True)
    return target


def python_image(pyz: Path) -> str:
    """An image that holds this Python, the libraries it is linked with, the single file, and nothing else."""
    python = Path(os.path.realpath(sys._base_executable))  # type: ignore[attr-defined]  # the one behind the environment
    library = Path(sysconfig.get_path("stdlib"))
    image = Image("python", [str(python), "-I", "/publish.pyz"])
    image.add("/publish.pyz", pyz)
    image.add(str(python), python)
    image.add(str(library), library)
    for needed in _libraries_of(python, *sorted((library / "lib-dynload").glob("*.so"))):
        image.add(str(needed), needed)
    return image.build()


def _libraries_of(*files: Path) -> set[Path]:
    """Shared libraries by the paths that the loader asks for, the loader among them (ldd(1))."""
    said = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False).stdout
    return {Path(found) for found in re.findall(r"(/\S+) \(0x", said)}
