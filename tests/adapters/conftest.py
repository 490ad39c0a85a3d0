from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty directory root."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder
