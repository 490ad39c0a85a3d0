"""What one node has written, another sees at its next look (nfs.1, nfs.2)."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import sleep

import pytest

from tests.support.nfs_mounts import MARKERS, Node, Server, until
from tests.support.program import listens, start

pytestmark = pytest.mark.nfs

Nodes = tuple[Node, Node]


def test_the_client_remembers_that_a_name_was_not_there(nodes: Nodes) -> None:
    """The reason for nfs.1; without it the tests below show nothing."""
    a, b = nodes
    assert not (b.root / "pub").exists()
    (a.root / "pub").mkdir()
    os.stat(b.root)
    assert not (b.root / "pub").exists()
    os.close(os.open(b.root, os.O_RDONLY | os.O_DIRECTORY))
    assert (b.root / "pub").exists()


def test_the_first_publication_is_seen_at_once(nodes: Nodes) -> None:
    """nfs.1: the other node has looked for `pub/` before it was there."""
    a, b = nodes
    a.make_save(1)
    assert b.resolve() == (0, b"", b"")
    assert a.publish(1).status == 0
    assert b.resolve() == b.says(1)


def test_a_later_publication_is_seen_at_once(nodes: Nodes) -> None:
    a, b = nodes
    for step in (1, 2, 3):
        a.make_save(step)
        assert a.publish(step).status == 0
        sleep(0.5)
        if step > 1:
            assert b.resolve() == b.says(step)
        else:
            os.listdir(b.root)


def test_nothing_is_never_said_from_a_cache(server: Server, version: str, tmp_path: Path) -> None:
    """nfs.1: the server is gone, and `pub/` was not there when it was last asked."""
    with server.mounted(tmp_path / "soft", f"vers={version},soft,timeo=5,retrans=1,retry=0") as mount:
        node = Node(mount / f"down-{version}")
        node.root.mkdir()
        assert node.resolve() == (0, b"", b"")
        with server.down():
            resolved = node.resolve()
        assert (resolved.status, resolved.out) == (1, b"")
        assert resolved.err


def test_a_save_that_another_node_has_just_made_can_be_published(nodes: Nodes) -> None:
    """nfs.2: this node has looked for it before."""
    a, b = nodes
    (a.root / "exec" / "a").mkdir(parents=True)
    assert b.publish(1).status == 1
    a.make_save(1)
    assert b.publish(1).status == 0


@pytest.mark.parametrize("framework", MARKERS)
def test_the_final_scan_sees_what_another_node_wrote_before_it(nodes: Nodes, framework: str) -> None:
    """nfs.2: the watch has looked for the marker many times before."""
    a, b = nodes
    (a.root / "exec" / "w").mkdir(parents=True)
    words = ["-framework", framework, "-epoch", "2", "-attempt", "w", "-interval", "500ms"]
    with start("watch", "-checkpoint", b.root, *words) as watch:
        until(lambda: listens(watch.pid))
        sleep(2)
        save = a.save(7, "w", framework)
        save.mkdir()
        sleep(3)
        (save / MARKERS[framework]).write_text('{"global_step": 7}')
        watch.send_signal(signal.SIGTERM)
        out, _ = watch.communicate()
    assert watch.returncode == 0
    assert out.startswith(b"published ")
