"""A directory that hangs, as a hard NFS mount does whose server is away: a watch, and a run, can always be ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hanging import Hanging, hanging

ENDING = [signal.SIGTERM, signal.SIGINT]


def save(root: Path, step: int) -> None:
    folder = root / f"exec/a/checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_text(f'{{"global_step": {step}}}')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    save(root, 1)
    return root


@pytest.fixture
def limit() -> str:
    return "1h"


@pytest.fixture
def watch(root: Path, tmp_path: Path, limit: str) -> Iterator[Hanging]:
    """A watch that hangs in a scan."""
    words = ("watch", "-checkpoint", root, "-framework", "hf", "-epoch", "3", "-attempt", "a")
    with hanging(tmp_path / "fifo", *words, "-interval", "20ms", "-timeout", limit) as watch:
        assert watch.process.stdout is not None
        assert b"step 1, " in watch.process.stdout.readline()
        watch.hang()
        yield watch


@pytest.mark.parametrize("first", ENDING)
@pytest.mark.parametrize("second", ENDING)
def test_a_second_signal_ends_a_watch_whose_scan_hangs(
    watch: Hanging, first: signal.Signals, second: signal.Signals
) -> None:
    """nfs.5, watch.6"""
    watch.process.send_signal(first)
    # The handler of the first one gives both their default actions.
    while caught(watch.process.pid, first) or caught(watch.process.pid, second):
        assert watch.process.poll() is None
    watch.process.send_signal(second)
    assert watch.process.wait(60) == -second


def caught(pid: int, number: int) -> bool:
    """Whether the process handles this signal (proc(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("limit", ["1s"])
@pytest.mark.parametrize("number", ENDING)
def test_the_time_of_the_final_scan_counts_from_the_first_signal(watch: Hanging, number: signal.Signals) -> None:
    """nfs.5, cli.3: also where another scan is under way, and hangs"""
    watch.process.send_signal(number)
    assert watch.process.wait(60) == 1
    watch.go_on()
    assert watch.process.stderr is not None
    assert b"exec/a/: out of time (-timeout 1s)\n" in watch.process.stderr.read()


def test_a_scan_that_only_took_long_is_followed_by_the_last_one(watch: Hanging, root: Path) -> None:
    """nfs.5, watch.6: the signal does not give up the scan"""
    watch.process.send_signal(signal.SIGTERM)
    save(root, 2)
    watch.go_on()
    assert watch.process.stdout is not None
    assert b"step 2, " in watch.process.stdout.readline()
    assert watch.process.wait(60) == 0


def test_a_run_whose_scan_hangs_ends_in_time_when_its_command_has_ended(root: Path, tmp_path: Path) -> None:
    """nfs.5, run.3"""
    words = ("run", "-checkpoint", root, "-framework", "hf", "-epoch", "3", "-attempt", "a", "-verify=false")
    go = tmp_path / "go"
    script = f"echo started; until [ -e {go} ]; do sleep 0.05; done"
    with hanging(tmp_path / "fifo", *words, "-interval", "20ms", "-timeout", "1s", "--", "sh", "-c", script) as run:
        assert run.process.stdout is not None
        assert run.process.stdout.readline() == b"started\n"
        run.hang()
        go.touch()
        assert run.process.wait(60) == 1
        run.go_on()
        assert run.process.stderr is not None
        said = run.process.stderr.read()
    assert said.count(b"out of time (-timeout 1s)\n") == 1
    assert b"run: the final scan failed" in said
