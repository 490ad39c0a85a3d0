"""The script of docs/by-hand.md does what the page says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.program import CLEAN, PROGRAM, listens, run

PAGE = (Path(__file__).parents[2] / "docs/by-hand.md").read_text()
SCRIPT, BEGIN = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
TRAIN = """
import json, pathlib, signal, sys
saves = pathlib.Path(sys.argv[sys.argv.index("--output_dir") + 1])
def save(step):
    (saves / f"checkpoint-{step}").mkdir(parents=True)
    (saves / f"checkpoint-{step}/trainer_state.json").write_text(json.dumps({"global_step": step}))
def stop(*_):
    save(200)
    sys.exit(7)
signal.signal(signal.SIGTERM, stop)
save(100)
print(*sys.argv[3:], flush=True)
sys.exit(int(pathlib.Path("status").read_text()))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "python").symlink_to(sys.executable)
    # The training waits for a writer before it ends.
    os.mkfifo(tmp_path / "status")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def start(root: Path, epoch: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["/bin/bash", "-c", SCRIPT],
        cwd=root.parent,
        env=CLEAN
        | {"PATH": f"{root.parent}:{Path(PROGRAM).parent}:{os.environ['PATH']}", "ROOT": str(root)}
        | {"DISPATCH_EPOCH": str(epoch), "DISPATCH_ATTEMPT": f"try-{epoch}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until_all_listen(script: subprocess.Popen[str]) -> None:
    """Returns when the watch and the training handle SIGTERM and the script waits for them, so that its trap is set."""
    children = Path(f"/proc/{script.pid}/task/{script.pid}/children")
    while True:
        # A child that ends while it is looked at was neither the watch nor the training.
        with suppress(FileNotFoundError, ProcessLookupError):
            listening = {word for child in map(int, children.read_text().split()) for word in words(child)}
            if {b"watch", b"train.py"} <= listening and "\nState:\tS" in status(script.pid):
                return
        assert script.poll() is None


def words(child: int) -> list[bytes]:
    """The command line of a process that handles SIGTERM, as a child of bash does until it is another program."""
    line = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    return line if listens(child) else []


def status(process: int) -> str:
    return Path(f"/proc/{process}/status").read_text()


def end(script: subprocess.Popen[str], root: Path, code: int) -> tuple[str, str]:
    """Lets the training end with a status; returns what the script printed."""
    until_all_listen(script)
    (root.parent / "status").write_text(str(code))
    return script.communicate(timeout=60)


def latest(root: Path) -> str:
    return run("resolve", "-checkpoint", root).out.decode().removeprefix(f"{root}/exec/").rstrip("\n")


def test_each_start_resumes_from_the_save_of_the_one_before(root: Path) -> None:
    """resolve.1, watch.6"""
    for epoch, resumed in ((1, ""), (2, f"--resume_from_checkpoint {root}/exec/try-1/checkpoint-100")):
        script = start(root, epoch)
        out, err = end(script, root, 0)
        assert script.returncode == 0, err
        assert resumed in out.splitlines(), err
        assert latest(root) == f"try-{epoch}/checkpoint-100"


def test_the_status_is_that_of_the_training(root: Path) -> None:
    script = start(root, 1)
    _, err = end(script, root, 3)
    assert script.returncode == 3, err


def test_a_signal_is_passed_on_and_the_last_save_is_published(root: Path) -> None:
    """watch.6"""
    script = start(root, 1)
    until_all_listen(script)
    script.send_signal(signal.SIGTERM)
    _, err = script.communicate(timeout=60)
    assert script.returncode == 7, err
    assert latest(root) == "try-1/checkpoint-200"


def test_without_a_root_the_training_does_not_start(root: Path) -> None:
    """resolve.3"""
    root.rmdir()
    script = start(root, 1)
    out, err = script.communicate(timeout=60)
    assert (script.returncode, out) == (1, "")
    assert "the root is not there" in err


def test_begin_sets_the_variables_that_a_dispatcher_would(root: Path) -> None:
    """begin.2, begin.3"""
    done = subprocess.run(
        ["/bin/bash", "-c", BEGIN + "env | grep ^DISPATCH_ | sort; echo resume=$DISPATCH_RESUME"],
        env=CLEAN | {"PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}", "ROOT": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    attempt, epoch, resume = done.stdout.splitlines()
    assert (attempt[:17], epoch, resume) == ("DISPATCH_ATTEMPT=", "DISPATCH_EPOCH=1", "resume="), done.stderr
