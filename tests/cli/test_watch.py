"""The life of a watch as its user sees it: watch.1, watch.6, layout.4."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import BinaryIO

import pytest

from tests.support.program import CLEAN, PROGRAM, call, fill, run, start, until_it_waits_to_write, without_narration
from tests.support.samples import SAMPLES

ENDING = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/exec/a").mkdir(parents=True)
    return tmp_path / "root"


def save(root: Path, step: int, state: str | None = None) -> None:
    """A whole save, or one with another state; the state appears at once, as a rename."""
    folder = root / f"exec/a/checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "new").write_text(f'{{"global_step": {step}}}' if state is None else state)
    (folder / "new").rename(folder / "trainer_state.json")


def line(root: Path, *more: str | Path) -> tuple[str | Path, ...]:
    return ("watch", "-checkpoint", root, "-framework", "hf", "-epoch", "3", "-attempt", "a", *more)


@contextmanager
def watching(root: Path, *more: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A watch that has published step 1, and so listens to signals."""
    save(root, 1)
    with start(*line(root, *more)) as process:
        try:
            assert b"step 1, " in said(process)
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def noted(process: subprocess.Popen[bytes]) -> bytes:
    """What it says on stderr besides its narration."""
    assert process.stderr is not None
    return without_narration(process.stderr.read())


def test_saves_are_published_as_they_become_complete(root: Path) -> None:
    """watch.1"""
    with watching(root, "-interval", "20ms") as process:
        save(root, 2, '{"global_step": 2')
        save(root, 3)
        assert f"step 3, {root}/exec/a/checkpoint-3)".encode() in said(process)
        save(root, 2)
        assert b"step 2, " in said(process)
        process.terminate()
        assert process.wait(60) == 0
        assert noted(process) == b""


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_in_the_wait_ends_it_after_one_more_scan(root: Path, number: signal.Signals) -> None:
    """watch.6"""
    with watching(root, "-interval", "1h") as process:
        save(root, 2)
        process.send_signal(number)
        assert b"step 2, " in said(process)
        assert process.wait(60) == 0
        assert noted(process) == b""


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_is_heard_by_a_job_that_its_shell_put_in_the_background(root: Path, number: signal.Signals) -> None:
    """watch.6: a shell without job control starts it with SIGINT ignored"""
    save(root, 1)
    script = '"$0" "$@" & echo $! >&2; wait $!; echo status $? >&2'
    shell = ["/bin/sh", "-c", script, PROGRAM, *map(str, line(root, "-interval", "1h"))]
    with subprocess.Popen(shell, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        pid = int(process.stderr.readline())
        assert b"step 1, " in said(process)
        save(root, 2)
        os.kill(pid, number)
        assert b"step 2, " in said(process)
        assert without_narration(process.stderr.read()) == b"status 0\n"


@contextmanager
def held(root: Path) -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO]]:
    """A watch in the middle of a scan: it has listed and published step 1, and waits to say so."""
    here, there = os.pipe()
    fill(there)
    save(root, 1)
    with os.fdopen(here, "rb") as out, start(*line(root, "-interval", "1h"), stdout=there) as process:
        os.close(there)
        until_it_waits_to_write(process.pid)
        try:
            yield process, out
        finally:
            process.kill()


def test_the_scan_under_way_is_finished_and_another_one_done(root: Path) -> None:
    """watch.6"""
    with held(root) as (process, out):
        process.send_signal(signal.SIGTERM)
        save(root, 2)
        one, two = out.read().lstrip(b"x").splitlines()
        assert b"step 1, " in one
        assert b"step 2, " in two
        assert process.wait(60) == 0


@pytest.mark.parametrize("first", ENDING)
@pytest.mark.parametrize("second", ENDING)
def test_a_second_signal_ends_it_at_once_as_a_shell_expects(
    root: Path, first: signal.Signals, second: signal.Signals
) -> None:
    """watch.6, cli.5: 130 and 143"""
    with held(root) as (process, _):
        process.send_signal(first)
        # Two signals that wait together may be taken in either order.
        while waits_for_it(process.pid, first):
            pass
        until_it_waits_to_write(process.pid)
        process.send_signal(second)
        # A shell sees the same status whether the kernel ends the process or the handler of the second signal does.
        assert process.wait(60) in (-second, 128 + second)
        assert noted(process) == b""


def waits_for_it(pid: int, number: int) -> bool:
    """Whether the process has yet to take this signal (proc(5))."""
    rows = dict(row.split(":\t", 1) for row in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool((int(rows["ShdPnd"], 16) | int(rows["SigPnd"], 16)) >> (number - 1) & 1)


def test_the_final_scan_is_held_to_the_timeout(root: Path) -> None:
    """cli.3: also on a directory"""
    here, there = os.pipe()
    save(root, 1)
    with os.fdopen(here, "rb", 0) as out, start(*line(root, "-timeout", "1s"), stdout=there) as process:
        assert b"step 1, " in out.readline()
        # The final scan blocks, because its output is not read.
        fill(there)
        save(root, 2)
        process.terminate()
        assert process.wait(60) == 1
        assert b": out of time (-timeout 1s)" in noted(process)
    os.close(there)


@pytest.mark.parametrize(
    ("state", "fault"),
    [("[]", "trainer_state.json"), ('{"global_step": 7}', "trainer_state.json"), ("{} {}", "trainer_state.json")],
)
def test_a_broken_state_ends_it_when_lower_steps_are_published(root: Path, state: str, fault: str) -> None:
    """watch.1, watch.4"""
    save(root, 1)
    save(root, 2, state)
    save(root, 3)
    result = run(*line(root))
    assert result.status == 1
    assert result.out.count(b"\n") == 1
    assert b"step 1, " in result.out
    (note,) = result.notes
    assert note.startswith(f"{root}/exec/a/checkpoint-2/{fault}")


def test_a_watch_older_than_its_timeout_still_has_a_final_scan(root: Path) -> None:
    """cli.3, watch.6: the time counts from the final scan's own start."""
    with watching(root, "-interval", "300ms", "-timeout", "1s") as process:
        for step in range(2, 6):
            save(root, step)
            assert f"step {step}, ".encode() in said(process)
        began = monotonic()
        while monotonic() - began < 1.1:
            assert process.poll() is None
            time.sleep(0.1)  # it grows older than its -timeout
        save(root, 9)
        process.send_signal(signal.SIGTERM)
        assert b"step 9, " in said(process)
        assert process.wait(60) == 0


def test_a_name_in_the_log_that_does_not_parse_ends_it_at_its_start(root: Path) -> None:
    """layout.4"""
    (root / "pub").mkdir()
    (root / "pub/foreign").touch()
    save(root, 1)
    result = call(*line(root))
    assert (result.status, result.out) == (1, b"")
    assert "foreign" in result.notes[0]


def test_it_says_what_it_watches_and_what_it_leaves(root: Path) -> None:
    """watch.8"""
    save(root, 1)
    save(root, 2, '{"global_step": 2')
    save(root, 3, "")
    with start(*line(root, "-interval", "1h")) as process:
        assert b"step 1, " in said(process)
        process.terminate()
        _, err = process.communicate(timeout=60)
    lack = "trainer_state.json is cut off"
    assert err.decode().splitlines() == [
        f"publish: watch: watching {root}/exec/a for saves of hf (checkpoint-N), epoch 3, every 3600s",
        "publish: watch: stopped by a signal: published 1 save",
        f"publish: watch: 2 saves are not complete, the newest is {root}/exec/a/checkpoint-3: {lack}",
    ]


def test_a_watch_that_an_error_ends_says_how_far_it_came(root: Path) -> None:
    """watch.8"""
    save(root, 1)
    save(root, 2, "[]")
    err = run(*line(root)).err.decode().splitlines()
    assert err[1] == "publish: watch: ended by an error: published 1 save"
    assert len(err) == 3


def test_saves_that_are_not_there_yet_are_awaited(root: Path) -> None:
    """watch.1"""
    (root / "exec/a").rmdir()
    (root / "exec").rmdir()
    with start(*line(root, "-interval", "20ms")) as process:
        save(root, 1)
        assert b"step 1, " in said(process)
        process.terminate()
        assert process.wait(60) == 0


def test_a_root_that_goes_away_ends_it(root: Path) -> None:
    """watch.1"""
    with watching(root, "-interval", "20ms") as process:
        root.rename(root.with_name("elsewhere"))
        assert process.wait(60) == 1
        assert b"is it mounted" in noted(process)


@pytest.mark.parametrize(
    "saves",
    [
        "ROOT/../other",
        "ROOT/pub",
        "ROOT/.publish",
        "ROOT/.publish/x",
        "ROOT/pub/x",
        "ROOT//pub//x",
        "/",
        "//elsewhere//x/",
        "s3://bucket/run",
    ],
)
def test_saves_that_can_hold_none_fail(root: Path, saves: str) -> None:
    """watch.1: they are quoted as the user wrote them"""
    given = saves.replace("ROOT", str(root))
    result = call(*line(root, given))
    assert (result.status, result.out) == (1, b"")
    (note,) = result.notes
    assert f": {given}" in note


def test_the_root_itself_may_hold_the_saves(root: Path) -> None:
    """watch.1"""
    (root / "checkpoint-4").mkdir()
    (root / "checkpoint-4/trainer_state.json").write_text('{"global_step": 4}')
    with start("watch", "-checkpoint", root, "-framework", "hf", "-epoch", "3", f"{root}/") as process:
        assert f"step 4, {root}/checkpoint-4)".encode() in said(process)
        process.terminate()
        assert process.wait(60) == 0


def test_the_attempt_may_be_a_name_that_is_not_utf_8(root: Path) -> None:
    """env.1, layout.3"""
    folder = os.fsencode(root) + b"/exec/\xe9"
    os.makedirs(folder + b"/checkpoint-1")
    with open(folder + b"/checkpoint-1/trainer_state.json", "wb") as state:
        state.write(b'{"global_step": 1}')
    words = ("watch", "-checkpoint", root, "-framework", "hf", "-epoch", "3")
    with start(*words, env={"DISPATCH_ATTEMPT": os.fsdecode(b"\xe9")}) as process:
        assert folder + b"/checkpoint-1)" in said(process)
        process.terminate()
        assert process.wait(60) == 0


def test_stdout_that_closes_ends_it(root: Path) -> None:
    """cli.7"""
    with watching(root, "-interval", "20ms") as process:
        assert process.stdout is not None
        process.stdout.close()
        save(root, 2)
        assert process.wait(60) == 1
        assert b"Broken pipe" in noted(process)


def test_a_watch_that_verifies_publishes_a_save_once_it_is_whole(root: Path) -> None:
    """verify.3"""
    with watching(root, "-interval", "20ms", "-verify") as process:
        shard = root / "exec/a/checkpoint-2/optimizer.pt"
        shard.parent.mkdir()
        shard.write_bytes(b"PK\3\4 under way")
        save(root, 2)
        save(root, 3)
        # Step 2 comes first in each scan: that step 3 is published shows that it was passed over.
        assert b"step 3, " in said(process)
        (root / "zip").write_bytes((SAMPLES / "torch/zip.pt").read_bytes())
        (root / "zip").rename(shard)
        assert b"step 2, " in said(process)
        process.terminate()
        assert process.wait() == 0
