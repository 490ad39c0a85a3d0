"""watch.13: no link leads a watch from the folder of an execution to saves that are not the execution's."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.program import run, start
from tests.support.run_jobs import published, run_line

LINKED = (
    "the folder of this execution is reached through a symbolic link "
    "(if that is meant, start publish watch with SAVES): "
)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with a complete save. That it is another user's does not matter: its owner may own the saves, too."""
    save = tmp_path / "planted/checkpoint-7"
    save.mkdir(parents=True)
    (save / "trainer_state.json").write_text('{"global_step": 7}')
    return save.parent


def watch_line(root: Path) -> list[str | Path]:
    return ["watch", "-checkpoint", root, "-framework", "hf", "-epoch", "1", "-interval", "50ms"]


def link_folder(root: Path, planted: Path) -> None:
    (root / "exec").mkdir()
    (root / "exec/a").symlink_to(planted)


def link_above(root: Path, planted: Path) -> None:
    (planted / "a").symlink_to(planted)
    (root / "exec").symlink_to(planted)


def link_inside_the_root(root: Path, planted: Path) -> None:
    planted.rename(root / "planted")
    link_folder(root, root / "planted")


LINKS = [link_folder, link_above, link_inside_the_root]


@pytest.mark.parametrize("link", LINKS)
def test_a_linked_folder_of_the_execution_is_refused(
    root: Path, planted: Path, link: Callable[[Path, Path], None]
) -> None:
    """watch.13"""
    link(root, planted)
    watch = run(*watch_line(root), "-attempt", "a")
    assert (watch.status, watch.messages) == (1, [f"{LINKED}{root}/exec/a"])
    begun = run(*run_line(root, "-attempt", "a"), "sh", "-c", "echo started")
    assert (begun.status, begun.out) == (1, b"")
    assert begun.messages[-1] == f"{LINKED}{root}/exec/a"
    assert published(root) == 0


def test_a_linked_folder_inside_the_execution_s_is_refused(root: Path, planted: Path) -> None:
    """watch.13, run.7"""
    (root / "exec/a").mkdir(parents=True)
    (root / "exec/a/inside").symlink_to(planted)
    result = run(*run_line(root, "-attempt", "a", "-saves", "inside"), "sh", "-c", "echo started")
    assert (result.status, result.out) == (1, b"")
    assert result.messages[-1] == f"{LINKED}{root}/exec/a/inside"


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_appears_while_a_watch_runs_ends_it(
    root: Path, planted: Path, link: Callable[[Path, Path], None]
) -> None:
    """watch.13: the folder is not there when the watch starts, and another user is faster than the training."""
    with start(*watch_line(root), "-attempt", "a") as watch:
        assert watch.stderr
        assert b"watching" in watch.stderr.readline()
        link(root, planted)
        said = watch.stderr.read().decode()
    assert watch.returncode == 1
    assert said.endswith(f"{LINKED}{root}/exec/a\n")
    assert published(root) == 0


def test_a_link_that_appears_while_a_command_runs_fails_its_scans(root: Path, planted: Path) -> None:
    """watch.13, run.5"""
    script = f'mkdir -p "$DISPATCH_SAVES"; ln -s {planted} "$DISPATCH_SAVES/inside"'
    result = run(*run_line(root, "-attempt", "a", "-saves", "inside"), "sh", "-c", script)
    assert result.status == 1
    assert f"{LINKED}{root}/exec/a/inside" in result.messages
    assert published(root) == 0


def test_a_link_that_the_user_gives_is_followed(root: Path, planted: Path) -> None:
    """watch.13, publish.3"""
    (root / "given").symlink_to(planted)
    with start(*watch_line(root), root / "given") as watch:
        assert watch.stdout
        assert watch.stdout.readline().endswith(f"{root}/given/checkpoint-7)\n".encode())
        watch.send_signal(signal.SIGTERM)
        assert watch.stdout.read() == b""
    assert watch.returncode == 0
