from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty checkpoint root."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"
