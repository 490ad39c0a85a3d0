"""A framework is one row: a copy of the program with one more row knows it everywhere."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/publish"
ROW = """
FRAMEWORKS["acme"] = Framework(
    "acme",
    (Layout(("acme-N",), rb"acme-([0-9]+)", (Need(b"acme.done", Check.FULL),)),),
    "Acme Trainer",
)

MARKERS = tuple("""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """How to call the copy."""
    shutil.copytree(SOURCE, tmp_path / "copy/publish")
    table = tmp_path / "copy/publish/domain/frameworks.py"
    text = table.read_text()
    assert text.count("\nMARKERS = tuple(") == 1
    table.write_text(text.replace("\nMARKERS = tuple(", ROW))
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'copy')!r}); {_CALL}"]


_CALL = "sys.argv[0] = 'publish'; import publish.__main__ as program; program.run()"

# Names each file on stderr before it is unlinked.
_TRACE = (
    "import os, sys; "
    "sys.addaudithook(lambda event, args: event == 'os.remove' and os.write(2, os.fsencode(args[0]) + b'\\n'))"
)


def run(program: list[str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *map(str, words)], capture_output=True, text=True, check=False, timeout=60)


def test_help_and_errors_name_it(program: list[str], tmp_path: Path) -> None:
    """watch.2"""
    told = run(program, "help", "watch").stdout
    assert "  acme          acme-N\n" in told
    assert "nemo-rl, acme, or marker" in " ".join(told.split())
    refused = run(program, "watch", "-checkpoint", tmp_path, "-framework", "x", "-epoch", "1")
    assert "nemo-rl, acme or marker: x" in refused.stderr


def test_watch_recognises_its_saves_and_prune_removes_its_marker_first(program: list[str], tmp_path: Path) -> None:
    """watch.2, prune.6"""
    root = tmp_path / "root"
    for step in (1, 2):
        save = root / f"exec/a/acme-{step}"
        save.mkdir(parents=True)
        (save / "acme.done").write_text("x")
        (save / "aaa").write_text("x")
    words = ["watch", "-checkpoint", str(root), "-framework", "acme", "-epoch", "1", "-attempt", "a"]
    with subprocess.Popen([*program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as watch:
        assert watch.stdout is not None
        assert ["acme-" in watch.stdout.readline() for _ in range(2)] == [True, True]
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(60) == 0

    traced = [*program[:2], f"{_TRACE}; {program[2]}"]
    ended = run(traced, "prune", "-checkpoint", root, "-keep", "1")
    assert ended.stdout == f"removed {root}/exec/a/acme-1\n"
    removed = [line for line in ended.stderr.splitlines() if line in {"acme.done", "aaa"}]
    assert removed == ["acme.done", "aaa"]
