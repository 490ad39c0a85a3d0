"""What a verb on a directory must not import: start-up time is a feature."""

from __future__ import annotations

import ast
import marshal
import struct
import subprocess
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest

import publish
from publish.cli import app
from tests.support.private_files import write_private_directory
from tests.support.program import CLEAN, PROGRAM, call
from tests.support.servers import free_ports

CHILD = """
import os, sys

def tell(status):
    os.write(2, repr(sorted(sys.modules)).encode())
    os.kill(os.getpid(), 9)

os._exit = tell
from publish.__main__ import run
run()
"""

HEAVY = {
    "boto3", "botocore", "hvac", "requests", "urllib3", "certifi", "ssl", "_ssl", "hashlib", "_hashlib", "socket",
    "http", "json", "email", "dataclasses", "argparse", "gettext", "inspect", "importlib.metadata", "logging",
    "threading", "concurrent", "subprocess", "tempfile", "shutil", "random", "pathlib", "urllib", "datetime", "decimal",
    "traceback", "textwrap", "typing", "re", "asyncio", "publish.adapters.s3", "publish.adapters.vault",
    "publish.cli.help", "publish.domain.credentials", "publish.domain.frameworks", "publish.adapters.posix.removal",
}  # fmt: skip


UNTIL_IT_WATCHES = CHILD.replace(
    "from publish.__main__ import run",
    """
from publish.__main__ import run
from publish.cli.watch_loop import WatchLoop

WatchLoop.run = lambda *_: tell(0)
""",
)


def imported(*words: str, child: str = CHILD) -> set[str]:
    """The modules that the program has imported when it ends, of which the interpreter alone needs none."""
    line = [sys.executable, "-c", child, *words]
    result = subprocess.run(line, env=CLEAN, capture_output=True, check=False)
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(sorted(sys.modules))"], env=CLEAN, capture_output=True, check=True
    )
    modules: list[str] = ast.literal_eval(result.stderr.splitlines()[-1].decode())
    assert "publish.cli.app" in modules
    return set(modules) - set(ast.literal_eval(bare.stdout.decode()))


@pytest.fixture
def root(tmp_path: Path) -> str:
    for step in ("1", "2"):
        (tmp_path / step).mkdir()
        assert call("publish", "-checkpoint", tmp_path, "-epoch", "1", tmp_path / step, step).status == 0
    return str(tmp_path)


def test_resolve_on_a_directory_imports_nothing_heavy(root: str) -> None:
    assert imported("resolve", "-checkpoint", root) & HEAVY == set()


def test_publish_on_a_directory_imports_nothing_heavy(root: str) -> None:
    assert imported("publish", "-checkpoint", root, "-epoch", "2", root + "/1", "1") & HEAVY == set()


def test_prune_on_a_directory_imports_only_its_own_part(root: str) -> None:
    own = {"publish.adapters.posix.removal", "publish.domain.frameworks"}
    assert imported("prune", "-checkpoint", root, "-keep", "1") & HEAVY <= own | {"json", "decimal", "re"}


def test_a_watch_on_a_directory_imports_nothing_heavy_until_there_is_a_save(root: str) -> None:
    (Path(root) / "exec" / "run").mkdir(parents=True)
    line = ("watch", "-checkpoint", root, "-framework", "hf", "-epoch", "1", "-attempt", "run")
    modules = imported(*line, child=UNTIL_IT_WATCHES)
    # Its scans run on a thread, so that a signal ends it whatever they hang in (nfs.5).
    own = {"publish.domain.frameworks", "threading"}
    assert modules & (HEAVY | {"publish.domain.prune", "publish.domain.completeness"}) == own


def test_a_usage_error_imports_no_adapter() -> None:
    assert not any(name.startswith("publish.adapters") for name in imported("resolve", "-x"))


def test_absent_sources_import_no_client(tmp_path: Path) -> None:
    line = ("resolve", "-checkpoint", "s3://bucket/run", "-creds", f"secret:{tmp_path}/none,file:{tmp_path}/none")
    assert imported(*line) & {"boto3", "botocore", "hvac", "requests", "urllib3", "ssl"} == set()


def test_an_s3_store_is_reached_without_the_vault_client(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    fields = {"access_key_id": "k", "secret_access_key": "s", "endpoint": f"http://127.0.0.1:{port}"}
    write_private_directory(tmp_path, fields)
    line = ("resolve", "-checkpoint", "s3://bucket/run", "-creds", f"file:{tmp_path}", "-timeout", "2s")
    modules = imported(*line)
    assert "botocore" in modules
    assert modules & {"boto3", "hvac", "requests"} == set()


def test_no_compiled_code_from_where_the_environment_says_runs(root: Path, tmp_path: Path) -> None:
    """env.3: Python takes a compiled file whose header fits the source for the source."""
    source = Path(app.__file__)
    status = source.stat()
    head = struct.pack("<III", 0, int(status.st_mtime), status.st_size)
    code = compile("import os; os.write(2, b'planted'); os._exit(3)", source, "exec")
    cached = tmp_path / source.relative_to("/").with_suffix(f".{sys.implementation.cache_tag}.pyc")
    cached.parent.mkdir(parents=True)
    cached.write_bytes(MAGIC_NUMBER + head + marshal.dumps(code))
    environment = CLEAN | {"PYTHONPYCACHEPREFIX": str(tmp_path)}
    done = subprocess.run([PROGRAM, "resolve", "-checkpoint", root], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    # Python itself would have run it.
    unguarded = [sys.executable, "-c", "import publish.cli.app"]
    assert subprocess.run(unguarded, env=environment, capture_output=True, check=False).stderr == b"planted"


def plant(folder: Path, *names: str) -> Path:
    """A folder of modules that tell that they ran."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(f"import os; os.write(2, b'planted {name}'); os._exit(3)\n")
    return folder


MODULES = ("publish", "json", "re", "enum", "gc", "warnings", "base64", "select", "botocore")


@pytest.mark.parametrize(
    "given",
    [":{planted}:.", ":/nonexistent", "/nonexistent:", ".", "./", "{planted}/", "{planted}/../planted", "//{planted}"],
)
def test_no_code_from_the_working_directory_or_pythonpath_runs(root: Path, tmp_path: Path, given: str) -> None:
    """env.3: a job's folder may hold anything; `site` writes an empty element as the working directory's path."""
    planted = plant(tmp_path / "planted", *MODULES)
    done = subprocess.run(
        [PROGRAM, "prune", "-checkpoint", root],
        cwd=planted,
        env=CLEAN | {"PYTHONPATH": given.format(planted=planted)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("given", [None, "", ":/nonexistent", "."])
def test_as_a_module_it_runs_no_code_from_the_working_directory(root: Path, tmp_path: Path, given: str | None) -> None:
    """env.3: `python -m` puts the working directory first; what Python itself imports at its start is not planted."""
    planted = plant(tmp_path / "planted", "json", "enum", "gc", "base64", "select", "botocore")
    done = subprocess.run(
        [sys.executable, "-m", "publish", "prune", "-checkpoint", root],
        cwd=planted,
        env=CLEAN | ({} if given is None else {"PYTHONPATH": given}),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("command", [[PROGRAM], [sys.executable, "-m", "publish"]], ids=["command", "module"])
def test_a_working_directory_that_was_removed_keeps_nothing_from_starting(tmp_path: Path, command: list[str]) -> None:
    """env.3"""
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', tmp_path / "gone", *command, "-version"],
        env=CLEAN,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", [[PROGRAM], [sys.executable, "-m", "publish"]], ids=["command", "module"])
def test_it_starts_in_the_folder_where_it_is_installed(command: list[str]) -> None:
    """env.3: that the working directory is that folder does not make its code anyone else's."""
    folder = Path(publish.__file__).parents[1]
    done = subprocess.run([*command, "-version"], cwd=folder, env=CLEAN, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
