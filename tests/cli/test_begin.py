"""`begin` as a job script uses it (begin.1 to begin.6)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.program import CLEAN, PROGRAM, call, run, start

NODES = 8
# No attempt holds a control character; anything else may be in the name of a folder.
ODD = [
    b"plain",
    b"two words",
    b"it's",
    b"''",
    b'$(touch x) `touch x` "$HOME"',
    b"\\",
    b"*?[a]~#!&;|<>()",
    b"-n",
    b"\xe9\xff",
    "é".encode(),
]


def publish(root: Path, epoch: int, step: int) -> Path:
    save = root / f"exec/a/step-{step}"
    save.mkdir(parents=True)
    (save / "weights").write_text("w")
    assert call("publish", "-checkpoint", root, "-epoch", str(epoch), save, str(step)).status == 0
    return save


def begin(root: Path, *words: str | bytes | Path, env: dict[str, str] | None = None) -> dict[str, object]:
    result = call("begin", "-checkpoint", root, "-json", *words, env=env)
    assert (result.status, result.err) == (0, b"")
    answer: dict[str, object] = json.loads(result.out)
    return answer


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
@pytest.mark.parametrize("odd", ODD)
def test_a_shell_gets_every_byte_back(tmp_path: Path, shell: str, odd: bytes) -> None:
    """begin.3"""
    root = os.fsencode(tmp_path) + b"/" + odd
    os.makedirs(root + b"/exec/" + odd)
    published = run("publish", "-checkpoint", root, "-epoch", "4", root + b"/exec/" + odd, "1")
    assert published.status == 0
    script = b"""
        answer=$("$0" begin -checkpoint "$1" -attempt "$2") || exit
        eval "$answer" || exit
        printf '%s\\n' "$DISPATCH_EPOCH" "$DISPATCH_ATTEMPT" "$DISPATCH_RESUME" "$DISPATCH_SAVES"
    """
    ended = subprocess.run(
        [shell, "-c", script, PROGRAM, root, odd], env=CLEAN, cwd=tmp_path, capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    saves = root + b"/exec/" + odd
    assert ended.stdout == b"".join(line + b"\n" for line in (b"5", odd, saves, saves))
    assert not (tmp_path / "x").exists()


def test_the_start_is_an_empty_word(root: Path) -> None:
    """begin.3"""
    assert call("begin", "-checkpoint", root, "-attempt", "a").out.decode().splitlines() == [
        "DISPATCH_EPOCH=1",
        "DISPATCH_ATTEMPT=a",
        "DISPATCH_RESUME=''",
        f"DISPATCH_SAVES={root}/exec/a",
    ]


def test_json_is_one_object(root: Path) -> None:
    """begin.3"""
    answer = {"epoch": 1, "attempt": "a", "resume": None, "saves": f"{root}/exec/a"}
    assert begin(root, "-attempt", "a") == answer
    save = publish(root, 1, 1)
    assert begin(root, "-attempt", b"\xe9") == {
        "epoch": 2,
        "attempt": "\udce9",
        "resume": str(save),
        "saves": f"{root}/exec/\udce9",
    }


def test_the_scheduler_names_the_execution(root: Path) -> None:
    """begin.2"""
    scheduler = {"DISPATCH_ATTEMPT": "try-4", "DISPATCH_EPOCH": "12"}
    assert begin(root, env=scheduler)["saves"] == f"{root}/exec/try-4"
    assert begin(root, env=scheduler)["epoch"] == 12
    assert begin(root, "-attempt", "try-5", "-epoch", "13", env=scheduler)["attempt"] == "try-5"


def test_without_an_attempt_every_call_is_an_execution(root: Path) -> None:
    """begin.2"""
    first, second = begin(root), begin(root)
    assert first["attempt"] != second["attempt"]
    assert (first["epoch"], second["epoch"]) == (1, 2)


def test_an_empty_attempt_is_a_usage_error(root: Path) -> None:
    """begin.2, env.1: the variable of a scheduler that gives none must not look like a fresh execution"""
    assert call("begin", "-checkpoint", root, env={"DISPATCH_ATTEMPT": ""}).status == 2


def test_going_back(root: Path) -> None:
    """begin.6"""
    earlier = publish(root, 1, 1)
    publish(root, 1, 2)
    assert begin(root, "-attempt", "a", "-from", earlier)["resume"] == str(earlier)
    refused = call("begin", "-checkpoint", root, "-attempt", "b", "-from", root / "exec/a/step-3")
    assert (refused.status, refused.out) == (1, b"")
    assert refused.notes == [
        f"-from: this save is not published (publish log lists those that are): {root}/exec/a/step-3"
    ]


def test_a_flag_that_contradicts_the_record_is_refused(root: Path) -> None:
    """begin.1"""
    begin(root, "-attempt", "a")
    refused = call("begin", "-checkpoint", root, "-attempt", "a", "-epoch", "7")
    assert (refused.status, refused.out) == (1, b"")
    assert refused.notes[0].startswith("this attempt has begun already, with epoch 1, not 7; ")


def test_all_nodes_of_an_attempt_get_one_answer(root: Path) -> None:
    """begin.1: they ask at the same time, beside another attempt's nodes"""
    publish(root, 1, 1)
    words = [("begin", "-checkpoint", root, "-attempt", attempt) for attempt in ("a", "b")]
    processes = [start(*line) for line in words for _ in range(NODES)]
    answers = [process.communicate() for process in processes]
    assert {err for _, err in answers} == {b""}
    assert len({out for out, _ in answers[:NODES]}) == len({out for out, _ in answers[NODES:]}) == 1
    assert answers[0] != answers[-1]


def test_a_root_that_is_not_there_is_not_the_start(root: Path) -> None:
    """begin.5"""
    result = call("begin", "-checkpoint", root / "elsewhere", "-attempt", "a")
    assert (result.status, result.out) == (1, b"")
    assert not (root / "elsewhere").exists()


def test_the_root_shows_nothing_of_it(root: Path) -> None:
    """layout.9, begin.4"""
    begin(root, "-attempt", "a")
    assert [entry.name for entry in root.iterdir()] == [".publish"]
    assert (root / ".publish/epoch/00000000000000000001").read_bytes() == b"a"
    assert (root / ".publish/begin/a").read_bytes() == b"1 -\n"
    assert list((root / ".publish/tmp").iterdir()) == []


def test_prune_keeps_what_the_newest_execution_resumes_from(root: Path) -> None:
    """prune.12"""
    earlier = publish(root, 1, 1)
    publish(root, 1, 2)
    begin(root, "-attempt", "a", "-from", earlier)
    assert call("prune", "-checkpoint", root, "-keep", "1").out == b""
    told = call("prune", "-checkpoint", root, "-keep", "1", "-dry-run")
    assert b"the newest execution resumed from it" in told.err
    publish(root, 2, 3)
    assert call("prune", "-checkpoint", root, "-keep", "1").out.count(b"removed ") == 2
    assert not earlier.exists()
