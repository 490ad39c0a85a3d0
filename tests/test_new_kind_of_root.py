"""A kind of root is a module and a row of `BACKENDS`: a copy of the program with one more opens it for every verb."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/publish"
# A directory by another name: what the row adds is the kind, not the store.
KIND = """
from publish.cli.backends import directory
from publish.cli.backends.backend import Backend

def _prepare(invocation, text, long_running):
    return directory.BACKEND.prepare(invocation, text.removeprefix(b"acme:"), long_running)

BACKEND = Backend("an Acme root", "Acme roots", lambda text: text.startswith(b"acme:"), _prepare, fault_prefix="acme: ")
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """How to call the copy."""
    shutil.copytree(SOURCE, tmp_path / "copy/publish")
    package = tmp_path / "copy/publish/cli/backends"
    (package / "acme.py").write_text(KIND)
    registry = (package / "__init__.py").read_text()
    for row, with_acme in (
        ("import directory, s3", "import acme, directory, s3"),
        ("BACKENDS = (", "BACKENDS = (acme.BACKEND, "),
    ):
        assert registry.count(row) == 1
        registry = registry.replace(row, with_acme)
    (package / "__init__.py").write_text(registry)
    start = f"import sys; sys.path.insert(0, {str(tmp_path / 'copy')!r}); sys.argv[0] = 'publish'; "
    return [sys.executable, "-c", start + "import publish.__main__ as program; program.run()"]


def run(program: list[str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *map(str, words)], capture_output=True, text=True, check=False, timeout=60)


def test_verbs_work_on_it_and_usage_errors_name_it(program: list[str], tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "checkpoint-1").mkdir(parents=True)
    there = f"acme:{root}"
    assert run(program, "publish", "-checkpoint", there, "-epoch", "1", root / "checkpoint-1", "1").returncode == 0
    assert run(program, "resolve", "-checkpoint", there).stdout == f"{root}/checkpoint-1\n"
    refused = run(program, "probe", "-checkpoint", there, "-creds", "file:/x")
    assert refused.returncode == 2
    assert "probe applies only to S3 roots; the root is an Acme root" in refused.stderr
