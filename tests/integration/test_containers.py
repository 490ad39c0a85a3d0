"""The single file in an empty container: a Python, the file, and nothing else; no shell, no home, nothing writable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from publish import __version__
from tests.support.containers import Container
from tests.support.pyz import build, python_image
from tests.support.s3_roots import make_place, private_directory
from tests.support.servers import KeyedServer

pytestmark = [pytest.mark.containers, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    return python_image(build(tmp_path_factory.mktemp("pyz") / "publish.pyz"))


def run(image: str, *arguments: str, mounted: Path) -> str:
    """Runs it to its end, on the machine's network; returns all that it said."""
    container = Container(
        image,
        arguments,
        volumes=[(str(mounted), str(mounted), "rw")],
        network_mode="host",
        read_only=True,
        cap_drop=["ALL"],
        # The user who runs the tests, whose folder of credentials it is.
        user=f"{os.getuid()}:{os.getgid()}",
    )
    try:
        status = container.wait()
        said = container.said()
    finally:
        container.stop()
    assert status == 0, said
    return said


def test_it_prints_its_version(image: str, tmp_path: Path) -> None:
    assert run(image, "-version", mounted=tmp_path) == f"publish {__version__}\n"


def test_it_publishes_resolves_and_prunes(image: str, tmp_path: Path) -> None:
    saves = [tmp_path / "exec" / f"step-{step}" for step in (1, 2)]
    for save in saves:
        save.mkdir(parents=True)
        said = run(image, "publish", f"-checkpoint={tmp_path}", "-epoch=1", str(save), save.name[5:], mounted=tmp_path)
        assert said.startswith("published ")
    assert run(image, "resolve", f"-checkpoint={tmp_path}", mounted=tmp_path) == f"{saves[1]}\n"
    assert run(image, "prune", f"-checkpoint={tmp_path}", "-keep=1", mounted=tmp_path) == f"removed {saves[0]}\n"


def test_it_probes_a_store(image: str, seaweedfs: KeyedServer, tmp_path: Path) -> None:
    place = make_place(seaweedfs)
    creds = private_directory(tmp_path / "key", seaweedfs)
    said = run(image, "probe", f"-checkpoint={place.url}", f"-creds={creds}", mounted=tmp_path)
    assert place.url in said
