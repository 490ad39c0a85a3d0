from __future__ import annotations

from pathlib import Path

import pytest

from publish.domain.ports import Namespace


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory root."""
    # Where the records will lie (layout.9); a namespace of two folders holds for one of one as well.
    monkeypatch.setattr(Namespace.PRUNE, "_value_", b".publish/prune")
    folder = tmp_path / "root"
    folder.mkdir()
    return folder
