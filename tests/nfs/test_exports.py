"""Exports that refuse: read-only, with root squashed, full. Nothing is said that is not so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.nfs_mounts import Node, Server

pytestmark = pytest.mark.nfs


@pytest.fixture
def export_options() -> str:
    return "rw,no_root_squash"


@pytest.fixture
def export(server: Server, tmp_path: Path, export_options: str) -> Iterator[Path]:
    """A small filesystem, exported; two steps are published and a third has a save."""
    with server.exported(Path("/srv", tmp_path.name), export_options) as folder:
        beneath = Node(folder)
        for step in (1, 2, 3):
            beneath.make_save(step)
        assert [beneath.publish(step).status for step in (1, 2)] == [0, 0]
        yield folder


@pytest.fixture
def node(server: Server, export: Path, version: str, tmp_path: Path) -> Iterator[Node]:
    with server.mounted(tmp_path / "mount", f"vers={version}", export) as mount:
        yield Node(mount)


@pytest.mark.parametrize("export_options", ["ro,no_root_squash", "rw,root_squash"])
def test_where_nothing_may_be_written_reading_works(node: Node, export: Path) -> None:
    before = sorted(export.rglob("*"))
    assert node.resolve() == node.says(2)
    for result in node.publish(3), node.prune():
        assert (result.status, result.out) == (1, b"")
        assert result.err.startswith(b"publish: ")
    assert sorted(export.rglob("*")) == before


@pytest.mark.parametrize("export_options", ["rw,root_squash"])
@pytest.mark.parametrize(("folder", "mode"), [("pub", 0o711), (".", 0o700)])
def test_a_log_that_may_not_be_read_is_an_error(
    server: Server, export: Path, version: str, tmp_path: Path, folder: str, mode: int
) -> None:
    (export / folder).chmod(mode)
    with server.mounted(tmp_path / "mount", f"vers={version}", export) as mount:
        resolved = Node(mount).resolve()
    assert (resolved.status, resolved.out) == (1, b"")


def test_on_a_full_export_reading_works(node: Node, export: Path) -> None:
    fill(export / "fill")
    assert node.resolve() == node.says(2)
    published = node.publish(3)
    if published.status == 0:
        assert node.resolve() == node.says(3)
    else:
        assert published.out == b""


def fill(path: Path) -> None:
    """Writes to a file until the filesystem takes no more."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
