"""Files of secrets, with the permissions that `publish` demands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_private(path: Path, text: str) -> Path:
    """A file that only its owner can read."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)
    return path


def write_private_directory(folder: Path, fields: Mapping[str, str]) -> Path:
    """A directory that only its owner can list, with a file for each field."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    for name, value in fields.items():
        write_private(folder / name, value)
    return folder
