"""Two nodes at the same moment: one wins, and neither fails (publish.4, prune.8, nfs.4)."""

from __future__ import annotations

import pytest

from tests.support.nfs_mounts import Node
from tests.support.program import start

pytestmark = pytest.mark.nfs

Nodes = tuple[Node, Node]


def test_of_twelve_publishers_on_two_nodes_one_publishes(nodes: Nodes) -> None:
    nodes[0].make_save(1)
    words = [["publish", "-checkpoint", str(n.root), "-epoch", "1", str(n.save(1)), "1"] for n in nodes]
    publishers = [start(*words[number % 2]) for number in range(12)]
    said = [publisher.communicate() for publisher in publishers]
    assert {publisher.returncode for publisher in publishers} == {0}
    assert sum(out.startswith(b"published ") for out, _ in said) == 1
    assert sum(err.startswith(b"publish: already published") for _, err in said) == 11
    assert [node.resolve() for node in nodes] == [node.says(1) for node in nodes]


def test_two_prunes_at_once_both_end_with_0(nodes: Nodes) -> None:
    """nfs.4: one removes folders under the other's feet, which are stale then."""
    a, b = nodes
    for step, folders in (1, 150), (2, 0):
        a.make_save(step, folders)
        assert a.publish(step).status == 0
    prunes = [start("prune", "-checkpoint", node.root, "-keep", "1") for node in nodes]
    said = [prune.communicate() for prune in prunes]
    assert [prune.returncode for prune in prunes] == [0, 0], said
    assert not a.save(1).exists()
    assert b.prune() == (0, b"", b"")
    assert b.resolve() == b.says(2)
