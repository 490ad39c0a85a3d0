"""Builds the program as one file for nodes with nothing but Python: `make_pyz.py dist/publish.pyz`.

The pinned requirements, pure Python only, and the package, in a zip that Python runs. Two builds
from one tree with one Python are byte-identical.
"""

from __future__ import annotations

import importlib.util
import marshal
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

TOP = Path(__file__).parents[1]
# Any moment will do, as long as it is always the same; a zip has none before this one.
MOMENT = (1980, 1, 1, 0, 0, 0)
# Isolated (-I): Python looks neither at PYTHON* variables nor into the working directory. `env -S` splits the words.
SHEBANG = b"#!/usr/bin/env -S python3 -I\n"

# `python3 publish.pyz` does not read the first line, and Python then imports from where PYTHONPATH says. `publish`
# clears `sys.path` before it imports anything, and comes from this file, which must be first, by an absolute path.
MAIN = '''\
"""Starts the program on the modules of this file and of Python's installation."""

import os
import sys

# Without the site module the path of this file is as it was given.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from publish.__main__ import run

run()
'''

# Of botocore's 100 MB of models, what S3 needs.
MODELS = {"endpoints", "partitions", "sdk-default-configuration", "_retry"}

# certifi writes its bundle to a temporary file when it is asked for a path and lives in a zip, and a process that ends
# as `publish` does never removes it. A file in memory has a path too, and needs no folder that can be written to.
CERTIFI = '''\
"""certifi's bundle at a path, from inside a zip and without a file on disk."""

import os
import pkgutil
import tempfile


def contents():
    """The bundle, as text."""
    return pkgutil.get_data("certifi", "cacert.pem").decode("ascii")


def where(_known=[]):
    """A path that stays good as long as the process lives."""
    if not _known:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("cacert.pem")
            path = f"/proc/self/fd/{descriptor}"
        else:
            descriptor, path = tempfile.mkstemp(suffix=".pem")
        os.write(descriptor, contents().encode("ascii"))
        _known.append(path)
    return _known[0]
'''


def main() -> None:
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        install_requirements(tree)
        (tree / "certifi" / "core.py").write_text(CERTIFI)
        copy_package(tree)
        (tree / "__main__.py").write_text(MAIN)
        write(tree, target)
    target.chmod(0o755)
    compiled_for = ".".join(map(str, sys.version_info[:2]))
    print(f"{target}: {target.stat().st_size:,} bytes, compiled for Python {compiled_for}")


def install_requirements(tree: Path) -> None:
    """What `requirements.txt` pins, none of it for one platform or one version of Python."""
    pure = ["--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none", "--no-deps", "--no-compile"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, *pure, "--require-hashes", "--target", tree, "--requirement", TOP / "requirements.txt"], check=True
    )
    shutil.rmtree(tree / "bin")


def copy_package(tree: Path) -> None:
    """The package as it stands in the work tree."""
    shutil.copytree(TOP / "src" / "publish", tree / "publish", ignore=shutil.ignore_patterns("__pycache__"))


def wanted(tree: Path) -> Iterator[Path]:
    """The files that belong into the zip, sorted, relative to the tree."""
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree)
        if path.is_dir() or name.suffix in {".pyc", ".pyi", ".typed"}:
            continue
        if name.parts[:2] == ("botocore", "data") and not is_model_of_s3(name):
            continue
        # Of a distribution's own notes only its terms are kept: the rest says how and when it was installed.
        if name.parts[0].endswith(".dist-info") and not name.name.upper().startswith(("LICENSE", "LICENCE", "NOTICE")):
            continue
        yield name


def is_model_of_s3(name: Path) -> bool:
    return name.parts[2] == "s3" or name.name.partition(".")[0] in MODELS


def write(tree: Path, target: Path) -> None:
    """Sources and, beside each, its code compiled by this Python; another one passes the latter over."""
    with target.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "w") as archive:
            for name in wanted(tree):
                content = (tree / name).read_bytes()
                add(archive, str(name), content)
                if name.suffix == ".py":
                    add(archive, f"{name}c", compiled(content, str(name)))


def add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, MOMENT)
    entry.create_system = 3  # POSIX, wherever it is built
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)


def compiled(source: bytes, name: str) -> bytes:
    """What a .pyc holds, of the kind that is believed without a look at the source (PEP 552)."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    # Marshal's output tells how often an object was in use elsewhere; a second time it is the same for all.
    again: CodeType = marshal.loads(marshal.dumps(code))  # noqa: S302  (its own, of a moment ago)
    flags = (0b01).to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source) + marshal.dumps(again)


if __name__ == "__main__":
    main()
