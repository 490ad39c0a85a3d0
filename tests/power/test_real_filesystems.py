"""On ext4 and xfs, cut after each effect of a verb, what it said is so (layout.7, data.1, prune.7). Needs root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support import stopping_program
from tests.support.disk_image import SIZES, DiskImage
from tests.support.power_judge import Judge, Said
from tests.support.power_trees import entry, published, put, save, save_files, tree_at
from tests.support.program import CLEAN
from tests.support.strict_model import Tree

pytestmark = pytest.mark.power

Disk = Callable[[], DiskImage]


@pytest.fixture(params=SIZES)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """Makes fresh filesystems of one kind; at the end all are unmounted."""
    disks: list[DiskImage] = []

    def make() -> DiskImage:
        folder = tmp_path / str(len(disks))
        folder.mkdir()
        disks.append(DiskImage(request.param, folder))
        return disks[-1]

    yield make
    for image in disks:
        image.close()


def cut_at(image: DiskImage, effect: int, words: Sequence[str]) -> tuple[Said, bool]:
    """Runs a verb until its effect of that number, then cuts the power; what it said, and whether it came so far."""
    command = [sys.executable, stopping_program.__file__, str(effect), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=CLEAN) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        image.cut()
        if os.WIFSTOPPED(status):
            process.kill()
        assert process.stdout
        said = process.stdout.read()
    image.restart()
    return Said.read(said), os.WIFSTOPPED(status)


def cut_everywhere(
    disk: Disk, before: Tree, words: Callable[[Path], Sequence[str]], judge: Judge, **steps: Sequence[int]
) -> None:
    """One filesystem for each effect of the verb, until it has none left."""
    broken = []
    effect, more = 0, True
    while more:
        effect += 1
        image = disk()
        put(before, os.fsencode(image.path / "root"))
        image.sync()
        said, more = cut_at(image, effect, words(image.path / "root"))
        left = tree_at(os.fsencode(image.path / "root"))
        broken += [(effect, rule) for rule in judge.broken(left, said, **steps)]
    assert not broken
    assert effect > 5


def publish(root: Path, step: int) -> list[str]:
    return ["publish", "-checkpoint", str(root), "-epoch", "1", str(root / os.fsdecode(save(step))), str(step)]


def test_the_first_publication_survives(disk: Disk, judge: Judge) -> None:
    cut_everywhere(disk, save_files(1), lambda root: publish(root, 1), judge)


def test_a_prune_can_be_cut_anywhere(disk: Disk, judge: Judge) -> None:
    before = {**save_files(1), **save_files(2), **published(1, 2)}
    words = lambda root: ["prune", "-checkpoint", str(root), "-keep", "1"]  # noqa: E731
    cut_everywhere(disk, before, words, judge, kept=[2], doomed=[1])


def test_what_a_published_save_holds_survives(disk: Disk, judge: Judge) -> None:
    """data.1, data.4: the job wrote the save and did not sync it."""
    image = disk()
    root = image.path / "root"
    root.mkdir()
    image.sync()
    put(save_files(1), os.fsencode(root))
    said, more = cut_at(image, 0, publish(root, 1))
    assert said.published == {entry(1)}
    assert not more
    assert not list(judge.broken(tree_at(os.fsencode(root)), said))
