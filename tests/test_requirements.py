"""The files of requirements hold what pyproject.toml asks for, each package with the hashes of its files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

HERE = Path(__file__).parents[1]
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())
FILES = sorted(path.name for path in HERE.glob("requirements*.txt"))
# The build of torch depends on the machine: one for the CPU, from whichever index has it.
UNHASHED = {"requirements-acceptance.txt"}


def asked_for(group: str = "") -> list[Requirement]:
    """What the package, or one of the groups, depends on."""
    if not group:
        return [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    return [
        one
        for part in PROJECT["dependency-groups"][group]
        for one in (asked_for(part["include-group"]) if isinstance(part, dict) else [Requirement(part)])
    ]


def pinned(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", (HERE / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("requirements.txt", [""]),
        ("requirements-build.txt", ["build"]),
        ("requirements-dev.txt", ["", "dev"]),
        ("requirements-actionlint.txt", ["actionlint"]),
        ("requirements-fuzz.txt", ["", "fuzz"]),
    ],
)
def test_every_dependency_is_pinned_to_a_version_that_it_allows(name: str, groups: list[str]) -> None:
    pins = pinned(name)
    for group in groups:
        for one in asked_for(group):
            assert one.specifier.contains(pins[one.name]), f"{name}: {one} (run `make lock`)"


def test_the_floors_are_the_lower_bounds() -> None:
    pins = pinned("requirements-floors.txt")
    bounds = {one.name: [bound.version for bound in one.specifier if bound.operator == ">="] for one in asked_for()}
    assert {name: [Version(pins[name])] for name in bounds} == {
        name: [Version(bound) for bound in lower] for name, lower in bounds.items()
    }


@pytest.mark.parametrize("name", sorted({*FILES} - UNHASHED))
def test_every_pin_has_a_hash(name: str) -> None:
    text = (HERE / name).read_text()
    packages = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(packages) == len(pinned(name))
    assert [package for package in packages if "--hash=sha256:" not in package] == []
