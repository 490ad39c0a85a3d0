"""What users install: the wheel and the sdist are whole, and pip, pipx and uv each make a working program of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from publish import __version__
from tests.support.private_files import write_private_directory
from tests.support.program import CLEAN

pytestmark = [pytest.mark.install, pytest.mark.timeout(300)]

TOP = Path(__file__).parents[2]
# The interpreter behind this environment: what a user has.
PYTHON = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]  # no public name for it


class Built(NamedTuple):
    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist of the work tree, and the wheel that is built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    tool("build", "--no-isolation", "--outdir", folder, TOP)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def tool(name: str, *arguments: str | Path, **env: str) -> None:
    """Runs a tool of this environment, which must succeed."""
    command = [sys.executable, "-m", name, *arguments]
    ended = subprocess.run(command, env=os.environ | env, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def with_pip(wheel: Path, folder: Path) -> Path:
    venv.create(folder / "env", with_pip=True)
    subprocess.run([folder / "env" / "bin" / "pip", "install", "--quiet", wheel], check=True)
    return folder / "env" / "bin" / "publish"


def with_pipx(wheel: Path, folder: Path) -> Path:
    places = {
        "PIPX_HOME": str(folder / "home"),
        "PIPX_BIN_DIR": str(folder / "bin"),
        "PIPX_MAN_DIR": str(folder / "man"),
    }
    tool("pipx", "install", "--python", PYTHON, wheel, **places)
    return folder / "bin" / "publish"


def with_uv(wheel: Path, folder: Path) -> Path:
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    tool("uv", "tool", "install", "--quiet", "--python", PYTHON, wheel, UV_PYTHON_DOWNLOADS="never", **places)
    return folder / "bin" / "publish"


@pytest.mark.parametrize("install", [with_pip, with_pipx, with_uv], ids=["pip", "pipx", "uv"])
def test_an_installer_makes_a_working_program(
    install: Callable[[Path, Path], Path], built: Built, tmp_path: Path
) -> None:
    program = install(built.wheel, tmp_path)
    root = tmp_path / "root"
    save = root / "exec" / "step-9"
    save.mkdir(parents=True)

    def run(*arguments: str | Path, status: int = 0) -> str:
        ended = subprocess.run(
            [program, *arguments], env=CLEAN, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == status, ended.stderr
        return ended.stdout + ended.stderr

    assert run("-version") == f"publish {__version__}\n"
    assert run("publish", "-checkpoint", root, "-epoch", "1", save, "9").startswith("published ")
    assert run("resolve", "-checkpoint", root) == f"{save}\n"
    # The libraries for S3 came with it: what it misses is a server, not a module.
    fields = {"access_key_id": "a", "secret_access_key": "s", "endpoint": "http://127.0.0.1:1"}
    key = write_private_directory(tmp_path / "key", fields)
    flags = ["-checkpoint", "s3://bucket/p", "-creds", f"file:{key}", "-timeout", "1s"]
    assert run("resolve", *flags, status=1).startswith("publish: store: ")


def test_package_and_program_have_the_same_version(built: Built) -> None:
    assert built.wheel.name == f"checkpoint_publish-{__version__}-py3-none-any.whl"
    assert built.sdist.name == f"checkpoint_publish-{__version__}.tar.gz"


def test_the_distributions_pass_twine_check(built: Built) -> None:
    tool("twine", "check", "--strict", *built)
    ended = subprocess.run(
        [Path(sys.executable).with_name("check-wheel-contents"), built.wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout


def test_the_wheel_holds_the_package_its_types_its_launcher_and_its_licence_alone(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = archive.namelist()
    here = {str(path.relative_to(TOP / "src")) for path in (TOP / "src" / "publish").rglob("*.py")} | {
        "publish/py.typed",
        f"checkpoint_publish-{__version__}.data/scripts/publish",
    }
    about = f"checkpoint_publish-{__version__}.dist-info"
    assert {name for name in names if not name.startswith(about)} == here
    assert f"{about}/licenses/LICENSE" in names


def test_the_sdist_holds_what_the_package_is_built_of(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/publish/__main__.py"} <= names
