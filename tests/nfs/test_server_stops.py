"""The server goes away, comes back, or has another folder in the root's place: no verb says what is not so."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from tests.support.nfs_mounts import Node, Server, until
from tests.support.program import listens, start

pytestmark = pytest.mark.nfs

SOFT = "soft,timeo=5,retrans=1,retry=0"
HARD = "hard,timeo=10"


@pytest.fixture
def soft(server: Server, version: str, tmp_path: Path) -> Iterator[Node]:
    """A root on a mount whose calls fail when the server is away."""
    with server.mounted(tmp_path / "soft", f"vers={version},{SOFT}") as mount:
        yield fresh(mount, tmp_path)


@pytest.fixture
def hard(server: Server, version: str, tmp_path: Path) -> Iterator[Node]:
    """A root on a mount whose calls wait for the server."""
    with server.mounted(tmp_path / "hard", f"vers={version},{HARD}") as mount:
        yield fresh(mount, tmp_path)


def fresh(mount: Path, name: Path) -> Node:
    root = mount / name.name
    root.mkdir()
    return Node(root)


def on_the_server(server: Server, node: Node) -> set[str]:
    return set(os.listdir(server.export / node.root.name / "pub"))


def publishing(node: Node, step: int) -> subprocess.Popen[bytes]:
    return start("publish", "-checkpoint", node.root, "-epoch", "1", node.save(step), str(step))


def test_on_a_soft_mount_every_verb_fails_while_the_server_is_away(server: Server, soft: Node) -> None:
    for step in (1, 2):
        soft.make_save(step)
    assert soft.publish(1).status == 0
    with server.down():
        results = [soft.publish(2), soft.resolve(), soft.prune()]
    assert [(result.status, result.out) for result in results] == [(1, b"")] * 3
    until(lambda: soft.resolve() == soft.says(1))
    assert soft.publish(2).status == 0
    assert soft.resolve() == soft.says(2)


def test_what_is_published_while_the_server_comes_and_goes_is_there(server: Server, soft: Node) -> None:
    for step in range(16):
        soft.make_save(step)
    said: list[str] = []
    for step in range(16):
        if step % 5 == 3:
            with server.down():
                result = soft.publish(step)
        else:
            result = soft.publish(step)
        if result.status == 0:
            words = (result.out or result.err).decode().split()
            said += [word for word in words if word.startswith("0" * 19)]
    until(lambda: soft.resolve().status == 0)
    assert len(said) >= 10
    assert set(said) <= on_the_server(server, soft)


def test_on_a_hard_mount_a_publication_waits_for_the_server(server: Server, hard: Node) -> None:
    hard.make_save(1)
    with server.down():
        publisher = publishing(hard, 1)
        sleep(4)
        assert publisher.poll() is None
    out, _ = publisher.communicate()
    assert publisher.returncode == 0
    assert out.decode().split()[1] in on_the_server(server, hard)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_verb_that_hangs_can_be_ended(server: Server, hard: Node, number: signal.Signals) -> None:
    hard.make_save(1)
    with server.down():
        publisher = publishing(hard, 1)
        sleep(4)
        publisher.send_signal(number)
        assert publisher.wait(10) == -number
    assert publisher.communicate() == (b"", b"")


def watching(node: Node, interval: str) -> subprocess.Popen[bytes]:
    (node.root / "exec" / "w").mkdir(parents=True)
    words = ["-framework", "dcp", "-epoch", "9", "-attempt", "w", "-interval", interval, "-timeout", "5s"]
    watch = start("watch", "-checkpoint", node.root, *words)
    until(lambda: listens(watch.pid))
    sleep(2)
    return watch


def test_a_watch_in_a_hung_scan_is_ended_by_a_second_signal(server: Server, hard: Node) -> None:
    """nfs.5."""
    watch = watching(hard, "200ms")
    with server.down():
        sleep(3)
        watch.send_signal(signal.SIGTERM)
        sleep(1)
        watch.send_signal(signal.SIGTERM)
        try:
            assert watch.wait(10) == -signal.SIGTERM
        finally:
            watch.kill()
    watch.communicate()


def test_the_final_scan_of_a_watch_that_hangs_runs_out_of_time(server: Server, hard: Node) -> None:
    """nfs.5: the final scan's time counts from the first signal, also where a scan is under way."""
    watch = watching(hard, "200ms")
    with server.down():
        sleep(3)
        watch.send_signal(signal.SIGTERM)
        try:
            assert watch.wait(15) == 1
        finally:
            watch.kill()
    watch.communicate()


def test_a_watch_between_two_scans_is_ended_though_the_server_is_away(server: Server, hard: Node) -> None:
    watch = watching(hard, "600s")
    with server.down():
        sleep(1)
        watch.send_signal(signal.SIGTERM)
        try:
            assert watch.wait(20) == 1
        finally:
            watch.kill()
    assert b"5s" in watch.communicate()[1]


def test_a_root_that_was_removed_and_made_again_is_an_error(server: Server, version: str, tmp_path: Path) -> None:
    """The mount then leads to a folder that is no more (ESTALE): never an empty log."""
    folder = server.export / f"again-{tmp_path.name}"
    folder.mkdir()
    Node(folder).make_save(1)
    assert Node(folder).publish(1).status == 0
    with server.mounted(tmp_path / "hard", f"vers={version},{HARD}", folder) as mount:
        node = Node(mount)
        assert node.resolve() == node.says(1)
        shutil.rmtree(folder)
        folder.mkdir()
        for result in node.resolve(), node.prune(), node.publish(1):
            assert (result.status, result.out) == (1, b"")
