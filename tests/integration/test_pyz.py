"""The program as one file: built the same twice, and at home where there is nothing but Python."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from publish import __version__
from tests.support.private_files import write_private_directory
from tests.support.pyz import build
from tests.support.s3_roots import make_place, private_directory
from tests.support.servers import KeyedServer

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In a folder that is not writable."""
    folder = tmp_path_factory.mktemp("pyz")
    file = build(folder / "publish.pyz")
    folder.chmod(0o555)
    return file


def run(pyz: Path, *arguments: str | Path, status: int = 0) -> str:
    """Without this environment's packages (-S), without variables, and from a folder that has nothing in it."""
    command = [sys.executable, "-I", "-S", pyz, *arguments]
    ended = subprocess.run(command, env={}, cwd="/proc", capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == status, ended.stderr
    return ended.stdout


def test_two_builds_are_byte_identical(pyz: Path, tmp_path: Path) -> None:
    again = build(tmp_path / "again.pyz", PYTHONHASHSEED="1", TZ="Asia/Tokyo", LC_ALL="C")
    assert again.read_bytes() == pyz.read_bytes()


def test_it_prints_the_packages_version(pyz: Path) -> None:
    assert run(pyz, "-version") == f"publish {__version__}\n"


def test_it_starts_by_its_own_name(pyz: Path) -> None:
    ended = subprocess.run([pyz, "-version"], capture_output=True, text=True, check=False)
    assert ended.stdout == f"publish {__version__}\n"


@pytest.mark.parametrize("isolated", [True, False], ids=["by its name", "as Python's argument"])
def test_it_runs_no_code_from_the_working_directory_or_pythonpath(pyz: Path, tmp_path: Path, *, isolated: bool) -> None:
    """env.3"""
    directories = [tmp_path / "working", tmp_path / "named", tmp_path / "dotted"]
    for directory in directories:
        directory.mkdir()
        # What the program imports; Python itself imports `keyword` before the program has a say, unless it is isolated.
        for module in ["base64", "signal", "socket", *(["keyword"] if isolated else [])]:
            (directory / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__file__)\n")
    key = private_key(tmp_path / "key")
    flags = ["-checkpoint", "s3://bucket/p", "-creds", f"file:{key}", "-timeout", "1s"]
    ended = subprocess.run(
        [*([] if isolated else [sys.executable]), pyz, "resolve", *flags],
        env=os.environ | {"PYTHONPATH": f":{directories[1]}:{tmp_path}/working/../dotted"},
        cwd=directories[0],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr.startswith("publish: store: ")
    assert not (tmp_path / "ran").exists()


def private_key(folder: Path) -> Path:
    """Credentials for a store that is not there."""
    fields = {"access_key_id": "a", "secret_access_key": "s", "endpoint": "http://127.0.0.1:1"}
    return write_private_directory(folder, fields)


def test_it_finds_itself_without_the_site_module(pyz: Path) -> None:
    """Without `site` the path of the file stays relative, as it was given."""
    command = [sys.executable, "-S", pyz.name, "-version"]
    ended = subprocess.run(command, cwd=pyz.parent, env={}, capture_output=True, text=True, check=False)
    assert ended.stdout == f"publish {__version__}\n", ended.stderr


def test_it_starts_in_a_working_directory_that_was_removed(pyz: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = 'cd "$0" && rmdir "$0" && exec "$@"'
    command: list[str | Path] = ["sh", "-c", script, tmp_path / "gone", sys.executable, pyz, "-version"]
    ended = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert ended.stdout == f"publish {__version__}\n", ended.stderr


def test_pythons_own_library_named_by_pythonpath_stays(pyz: Path) -> None:
    env = {"PYTHONPATH": os.path.dirname(os.__file__)}
    ended = subprocess.run([sys.executable, pyz, "-version"], env=env, capture_output=True, text=True, check=False)
    assert ended.stdout == f"publish {__version__}\n", ended.stderr


def test_every_verb_works_on_a_posix_root(pyz: Path, tmp_path: Path) -> None:
    saves = [tmp_path / "exec" / f"step-{step}" for step in (1, 2)]
    for epoch, save in enumerate(saves):
        save.mkdir(parents=True)
        assert run(pyz, "publish", "-checkpoint", tmp_path, "-epoch", str(epoch), save, "7").startswith("published ")
    assert run(pyz, "resolve", "-checkpoint", tmp_path) == f"{saves[1]}\n"
    assert run(pyz, "prune", "-checkpoint", tmp_path, "-keep", "1") == f"removed {saves[0]}\n"


def test_it_works_with_a_store(pyz: Path, seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """botocore's model of S3 lives inside the zip, where no file can be opened."""
    place = make_place(seaweedfs)
    place.fill("step-5/.metadata")
    flags = ["-checkpoint", place.url, "-creds", private_directory(tmp_path / "key", seaweedfs)]
    assert place.url in run(pyz, "probe", *flags)
    assert run(pyz, "publish", *flags, "-epoch", "1", f"{place.url}/step-5", "5").startswith("published ")
    assert run(pyz, "resolve", *flags) == f"{place.url}/step-5\n"


def test_it_contains_a_ca_bundle_and_leaves_no_file_behind(pyz: Path, tmp_path: Path) -> None:
    """s3.14: for a node that has no bundle of its own."""
    script = f"""if True:
        import sys, ssl, os
        sys.path.insert(0, {str(pyz)!r})
        import certifi
        print(len(ssl.create_default_context(cafile=certifi.where()).get_ca_certs()))
        print(os.listdir({str(tmp_path)!r}))
    """
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], env={"TMPDIR": str(tmp_path)}, capture_output=True, check=True
    ).stdout.decode()
    roots, left = said.splitlines()
    assert int(roots) > 100
    assert left == "[]"


def test_another_python_version_ignores_the_compiled_code(pyz: Path, tmp_path: Path) -> None:
    strange = tmp_path / "strange.pyz"
    with zipfile.ZipFile(pyz) as made, zipfile.ZipFile(strange, "w") as changed:
        for entry in made.infolist():
            content = made.read(entry)
            changed.writestr(entry, b"\0\0\r\n" + content[4:] if entry.filename.endswith(".pyc") else content)
    assert run(strange, "-version") == f"publish {__version__}\n"


def test_every_distribution_in_it_brings_its_licence(pyz: Path) -> None:
    with zipfile.ZipFile(pyz) as archive:
        names = archive.namelist()
    packages = {name.split("/")[0].removesuffix(".py") for name in names} - {"__main__", "__main__.pyc", "publish"}
    licensed = {name.split("-")[0] for name in packages if name.endswith(".dist-info")}
    assert packages >= {"botocore", "hvac", "requests"}
    assert {"botocore", "hvac", "requests", "urllib3", "certifi", "idna", "six", "python_dateutil"} <= licensed
