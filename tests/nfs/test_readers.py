"""Prune beside a reader that holds a file open: the client then leaves a `.nfs…` name in its place (prune.5, nfs.3)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.nfs_mounts import Node, until

pytestmark = pytest.mark.nfs

Nodes = tuple[Node, Node]


@contextmanager
def held_open(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        os.close(file)


def entry(node: Node, step: int) -> Path:
    (found,) = (node.root / "pub").glob(f"*-{step:020}-*")
    return found


def with_publications(node: Node, *steps: int) -> None:
    for step in steps:
        node.make_save(step)
        assert node.publish(step).status == 0


def nfs_names(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".nfs")]


def test_a_save_that_is_read_on_this_node_goes_when_it_is_closed(nodes: Nodes) -> None:
    a, b = nodes
    with_publications(a, 1, 2)
    with held_open(a.save(1) / "deep" / "weights") as file:
        pruned = a.prune()
        assert pruned.status == 1
        assert b"checkpoint-1" in pruned.err
        assert os.read(file, 10) == b"w"
        assert b.resolve() == b.says(2)
    until(lambda: a.prune().status == 0)
    assert not a.save(1).exists()


def test_a_save_that_is_read_on_another_node_goes(nodes: Nodes) -> None:
    a, b = nodes
    with_publications(a, 1, 2)
    with held_open(b.save(1) / "deep" / "weights") as file:
        assert a.prune().status == 0
        assert not a.save(1).exists()
        # Stale, unless the client has read ahead.
        with suppress(OSError):
            assert os.read(file, 10) == b"w"


def test_an_entry_that_is_read_while_it_is_removed_is_none(nodes: Nodes) -> None:
    """nfs.3: a backup reads `pub/`; no verb of any node minds."""
    a, b = nodes
    with_publications(a, 1, 2)
    with held_open(entry(a, 1)):
        assert a.prune().status == 0
        assert nfs_names(a.root / "pub")
        assert [node.resolve() for node in nodes] == [node.says(2) for node in nodes]
        assert [node.prune() for node in nodes] == [(0, b"", b"")] * 2
    assert b.resolve() == b.says(2)


def test_a_record_that_is_read_while_it_is_dropped_is_none(nodes: Nodes) -> None:
    """nfs.3: the same for the records of removals."""
    a, _ = nodes
    with_publications(a, 1, 2, 3)
    assert a.prune(keep=2).status == 0
    (records,) = (folder for folder in a.root.rglob("prune") if "exec" not in folder.parts)
    record = records / entry(a, 2).name
    record.touch()
    with held_open(record):
        assert a.prune().status == 0
        assert nfs_names(records)
        assert a.prune() == (0, b"", b"")


def test_a_name_of_that_kind_is_an_error_elsewhere(tmp_path: Path) -> None:
    """nfs.3: on a local filesystem nothing leaves such names, so it is foreign there."""
    node = Node(tmp_path)
    with_publications(node, 1)
    (tmp_path / "pub" / (".nfs" + "0" * 24)).touch()
    resolved = node.resolve()
    assert resolved.status == 1
    assert b".nfs" in resolved.err
