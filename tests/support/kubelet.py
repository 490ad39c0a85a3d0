"""What the kubelet does for a container: its variables, its command line and its mounted Secrets."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any


def environment(variables: Iterable[Mapping[str, Any]], fields: Mapping[str, str]) -> dict[str, str]:
    """A container's `env`; `fields` are those of its pod, and an annotation or a label that it lacks is empty.

    A value may refer to the variables before it (Kubernetes API, EnvVar, value).
    """
    env: dict[str, str] = {}
    for variable in variables:
        if "value" in variable:
            env[variable["name"]] = expanded(variable["value"], env)
        else:
            env[variable["name"]] = fields.get(variable["valueFrom"]["fieldRef"]["fieldPath"], "")
    return env


def expanded(word: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` is the variable's value; what names none stays as it is (Kubernetes API, Container, args)."""
    return re.sub(r"\$\((\w+)\)", lambda found: env.get(found[1], found[0]), word)


class MountedSecret:
    """DIR with `..data` and a link for each field, swapped as kubernetes' pkg/volume/util/atomic_writer.go does it."""

    def __init__(self, directory: Path, fields: Mapping[str, str]) -> None:
        self.directory = directory
        self._numbers = count()
        directory.mkdir()
        self._old = self._write(fields)
        (directory / "..data").symlink_to(self._old.name)
        self._link(fields)

    def swap(self, fields: Mapping[str, str]) -> None:
        """Replaces all fields at one moment, then sees to the links and removes the old folder."""
        new = self._write(fields)
        link = self.directory / "..data_tmp"
        link.symlink_to(new.name)
        link.rename(self.directory / "..data")
        self._link(fields)
        for path in self.directory.iterdir():
            if not path.name.startswith("..") and path.name not in fields:
                path.unlink()
        shutil.rmtree(self._old)
        self._old = new

    def _write(self, fields: Mapping[str, str]) -> Path:
        folder = self.directory / f"..2026_11_29_00_00_00.{next(self._numbers)}"
        folder.mkdir()
        for name, value in fields.items():
            (folder / name).write_text(value)
        return folder

    def _link(self, fields: Mapping[str, str]) -> None:
        for name in fields:
            if not (self.directory / name).is_symlink():
                (self.directory / name).symlink_to(f"..data/{name}")
