"""Every command line of docs/frameworks.md is one that the installed program takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.program import start

PAGE = Path(__file__).parents[2] / "docs/frameworks.md"


def examples() -> list[str]:
    """The flags in the code blocks, each on one line."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("-framework ")]


def test_there_are_examples() -> None:
    assert len(examples()) >= 6


@pytest.mark.parametrize("example", examples())
def test_an_example_watches(example: str, tmp_path: Path) -> None:
    """watch.2"""
    line = ["-checkpoint", str(tmp_path), "-epoch", "1", "-attempt", "a", *shlex.split(example)]
    with start("watch", *line) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.terminate()
        process.communicate(timeout=60)
    assert b": watching " in said
    assert process.returncode == 0
