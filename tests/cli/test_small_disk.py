"""A small filesystem that is full: what each verb does, that a run outlives it, and that pruning keeps a run going."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.program import CLEAN, PROGRAM

# Namespaces of its own need no root, and nothing outlives the test.
_IN_NAMESPACE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--map-root-user", "sh", "-euc")

_HELPERS = """
save() {
    mkdir -p "$ROOT/exec/a/checkpoint-$1"
    echo "{\\"global_step\\": $1}" > "$ROOT/exec/a/checkpoint-$1/trainer_state.json"
}
fill() { i=0; mkdir -p "$ROOT/other"; while touch "$ROOT/other/$i" 2>/dev/null; do i=$((i + 1)); done; }
full_with_four_saves() {  # the last one is not published
    for step in 1 2 3 4; do
        save $step
        [ $step = 4 ] || "$PUBLISH" publish -checkpoint "$ROOT" -epoch 1 "$ROOT/exec/a/checkpoint-$step" $step >&2
    done
    fill
}
prune() { "$PUBLISH" prune -checkpoint "$ROOT" -keep 1 > "$OUTSIDE/out" && echo 0 || echo $?; }
free() { for i in $(seq "$1"); do rm "$ROOT/other/$((i - 1))"; done; }
published() { ls "$ROOT/pub" | cut -c 22-41 | sed 's/^0*/published step /'; }
"""

_TRAIN = """
import os, sys, time
root = sys.argv[1]
full = 0
for step in range(1, 41):
    folder = f"{root}/exec/a/checkpoint-{step}"
    os.makedirs(folder)
    end = time.monotonic() + 60
    while True:
        try:
            with open(f"{folder}/model.bin", "wb") as file:
                file.write(bytes(100_000))
            break
        except OSError:  # as a trainer that waits for room would
            full += 1
            if time.monotonic() > end:
                sys.exit(f"no room for step {step}")
            time.sleep(0.05)
    with open(f"{folder}/trainer_state.json", "w") as file:
        file.write('{"global_step": %d}' % step)
print("full", full > 0)
"""


def run_on_small_disk(place: Path, limits: str, script: str) -> tuple[list[str], list[str]]:
    """The lines of stdout and stderr of a shell script; $ROOT is the filesystem, $OUTSIDE a folder with room."""
    (place / "root").mkdir()
    (place / "outside").mkdir()
    mount = f'mount -t tmpfs -o {limits} tmpfs "$ROOT"\n'
    env = {
        **CLEAN,
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "ROOT": str(place / "root"),
        "OUTSIDE": str(place / "outside"),
        "PUBLISH": PROGRAM,
        "PYTHON": sys.executable,
        "HELPERS": _HELPERS,
        "TRAIN": _TRAIN,
    }
    done = subprocess.run(
        [*_IN_NAMESPACE, mount + _HELPERS + script], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_a_publication_on_a_full_disk_is_an_error_and_the_log_is_as_before(tmp_path: Path) -> None:
    """cli.5"""
    out, err = run_on_small_disk(
        tmp_path,
        "size=2m,nr_inodes=60",
        """
        full_with_four_saves 2> /dev/null
        "$PUBLISH" publish -checkpoint "$ROOT" -epoch 1 "$ROOT/exec/a/checkpoint-4" 4 || echo $?
        "$PUBLISH" resolve -checkpoint "$ROOT"
        """,
    )
    assert out == ["1", f"{tmp_path}/root/exec/a/checkpoint-3"]
    assert "No space left on device" in err[0]


def test_a_prune_without_room_for_its_records_removes_nothing(tmp_path: Path) -> None:
    """prune.5, prune.7"""
    out, err = run_on_small_disk(
        tmp_path,
        "size=2m,nr_inodes=60",
        """
        full_with_four_saves 2> /dev/null
        prune
        ls "$ROOT/exec/a"
        published
        """,
    )
    assert out == ["1", *(f"checkpoint-{step}" for step in range(1, 5)), *(f"published step {n}" for n in (1, 2, 3))]
    assert "No space left on device" in err[0]


def test_a_prune_frees_a_disk_with_room_for_one_record(tmp_path: Path) -> None:
    """prune.5, prune.7: its own folders and one record; what it removes makes room for the rest."""
    out, err = run_on_small_disk(
        tmp_path,
        "size=2m,nr_inodes=60",
        """
        full_with_four_saves 2> /dev/null
        free 3
        for time in 1 2; do
            prune
            ls "$ROOT/exec/a"
        done
        published
        """,
    )
    first = ["1", "checkpoint-2", "checkpoint-3", "checkpoint-4"]
    assert out == [*first, "0", "checkpoint-3", "checkpoint-4", "published step 3"]
    assert err


def test_what_only_reads_needs_no_permission_to_write(tmp_path: Path) -> None:
    """prune.10, log.1: on a filesystem that is mounted read-only."""
    out, err = run_on_small_disk(
        tmp_path,
        "size=2m,nr_inodes=60",
        """
        full_with_four_saves 2> /dev/null
        mount -o remount,ro "$ROOT"
        "$PUBLISH" prune -checkpoint "$ROOT" -keep 1 -dry-run
        "$PUBLISH" log -checkpoint "$ROOT" -svg "$OUTSIDE/run.svg" | wc -l
        "$PUBLISH" retract -checkpoint "$ROOT" "$ROOT/exec/a/checkpoint-3" || echo $?
        """,
    )
    saves = f"{tmp_path}/root/exec/a/checkpoint-"
    assert out == [f"would remove {saves}1", f"would remove {saves}2", "3", "1"]
    kept, failed = err
    assert kept == f"publish: prune: would keep {saves}3: the latest publication, within -keep 1"
    assert failed.startswith(f"publish: retract: cannot remove {tmp_path}/root/pub/")
    assert failed.endswith("Read-only file system")


def test_a_run_outlives_a_full_disk_and_publishes_what_it_could_not(tmp_path: Path) -> None:
    """run.5, watch.10: the training goes on, and the failure is reported."""
    out, err = run_on_small_disk(
        tmp_path,
        "size=1m,nr_inodes=60",
        """
        touch "$OUTSIDE/err"
        status=0
        "$PUBLISH" run -checkpoint "$ROOT" -framework hf -attempt a -interval 100ms -keep 3 -- \\
            sh -euc "$HELPERS"'
                mkdir -p "$ROOT/exec/a"
                fill
                free 2  # the save itself: a folder and a file
                save 1
                until grep -q "No space left on device" "$OUTSIDE/err"; do sleep 0.05; done
                rm -r "$ROOT/other"
                save 2
            ' 2>> "$OUTSIDE/err" || status=$?
        echo "status $status"
        published
        grep "No space left" "$OUTSIDE/err" | sort -u >&2
        """,
    )
    assert out == ["status 0", "published step 1", "published step 2"]
    assert err


@pytest.mark.parametrize("keep", [1, 2])
def test_a_watch_that_prunes_keeps_a_long_run_on_a_small_disk_going(tmp_path: Path, keep: int) -> None:
    """watch.10: forty saves of 100 kB go through a filesystem that holds ten; the newest stay."""
    out, err = run_on_small_disk(
        tmp_path,
        "size=1m",
        f"""
        mkdir -p "$ROOT/exec/a"
        "$PUBLISH" watch -checkpoint "$ROOT" -framework hf -epoch 1 -attempt a -interval 50ms -keep {keep} \\
            > "$OUTSIDE/out" 2> "$OUTSIDE/err" &
        "$PYTHON" -c "$TRAIN" "$ROOT"
        kill -TERM $!
        wait $! && echo "status 0"
        grep -c ^published "$OUTSIDE/out"
        published
        ls "$ROOT/exec/a"
        """,
    )
    assert err == []
    assert out[1:3] == ["status 0", "40"]
    newest = range(41 - keep, 41)
    assert out[3:] == [*(f"published step {step}" for step in newest), *(f"checkpoint-{step}" for step in newest)]
