"""The lines of examples/torchrun with the real torchrun: on one node, and on two."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.test_real_frameworks import EXAMPLES, HERE
from tests.support.cli_job import publish
from tests.support.program import CLEAN, PROGRAM

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

ONE_NODE, ON_S3, MANY_NODES = re.findall(
    r"^```sh\n(.*?)^```", (EXAMPLES / "torchrun" / "README.md").read_text(), re.MULTILINE | re.DOTALL
)
# train.py: the training gets what it needs from its environment.
TRAIN = f"""
import os, runpy, sys
sys.argv[1:] = ["--saves", os.environ["DISPATCH_SAVES"], "--resume", os.environ["DISPATCH_RESUME"]]
sys.argv += ["--until", os.environ["UNTIL"]]
runpy.run_path({str(HERE / "jobs" / "dcp_job.py")!r}, run_name="__main__")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def started(line: str, root: Path, processes: int, **variables: str) -> subprocess.Popen[str]:
    """A line of the page, with the test's own root and number of processes."""
    python = os.environ.get("PUBLISH_TEST_TORCH_PYTHON")
    if python is None:
        pytest.fail("PUBLISH_TEST_TORCH_PYTHON names no interpreter that has torch; use make acceptance")
    assert line.count("/ckpt/run-7") == line.count("--nproc-per-node 8 train.py") == 1
    line = line.replace("/ckpt/run-7", str(root)).replace("8 train.py", f"{processes} train.py")
    env = CLEAN | {
        "PATH": f"{Path(python).absolute().parent}:{Path(PROGRAM).parent}:{os.defpath}",
        "PYTHONPATH": str(EXAMPLES),
        "HOME": str(root.parent),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    return subprocess.Popen(
        ["bash", "-c", line], cwd=root.parent, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ended(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    return said


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def test_on_one_node_the_line_starts_a_job_and_starts_it_again(root: Path) -> None:
    """run.1"""
    assert "starts at step 0\n" in ended(started(ONE_NODE, root, 2, UNTIL="10"))
    first = publish("resolve", "-checkpoint", root)
    assert first.endswith("/step-10\n")
    said = ended(started(ONE_NODE, root, 2, UNTIL="20"))
    assert f"resuming from {first}" in said
    assert "starts at step 10\n" in said
    assert publish("resolve", "-checkpoint", root).endswith("/step-20\n")


def test_on_two_nodes_all_get_one_answer_and_node_0_publishes(root: Path) -> None:
    """run.6, begin.1"""
    for attempt, until, origin in [("job-0", "10", "starting from step 0"), ("job-1", "20", "exec/job-0/step-10")]:
        shared = {"ATTEMPT": attempt, "NODES": "2", "MASTER": "127.0.0.1", "PET_MASTER_PORT": free_port()}
        nodes = [started(MANY_NODES, root, 1, UNTIL=until, NODE_RANK=rank, **shared) for rank in ("0", "1")]
        said = [ended(node) for node in nodes]
        assert all(origin in words for words in said)
        assert ["publish: published " in words for words in said] == [True, False]
        assert publish("resolve", "-checkpoint", root) == f"{root}/exec/{attempt}/step-{until}\n"


def test_on_s3_the_line_differs_only_in_the_root_and_its_key() -> None:
    """The page's other lines are run above."""
    assert ON_S3.replace('s3://ckpts/run-7 -creds "file:$HOME/.config/ckpt-s3"', "/ckpt/run-7") == ONE_NODE
