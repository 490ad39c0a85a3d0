"""A filesystem without room for one more file: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.program import PROGRAM

# The shell that mounts it owns the namespace, so the mount goes when the shell ends, however it ends.
_FULL = """
mount -t tmpfs -o size=2m,nr_inodes=60 tmpfs "$ROOT" && cd "$ROOT"
for step in 1 2 3 4; do
  mkdir -p exec/a/$step && echo weights > exec/a/$step/weights
  [ $step = 4 ] || "$PUBLISH" publish -checkpoint "$ROOT" -epoch 1 "$ROOT/exec/a/$step" $step > /dev/null || exit 9
done
number=0
while (: > fill-$number) 2> /dev/null; do number=$((number + 1)); done
"""


def on_a_full_disk(tmp_path: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--mount", "--map-root-user", "/bin/sh", "-c", _FULL + script],
        env={"ROOT": str(tmp_path), "PUBLISH": PROGRAM, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_publication_on_a_full_disk_is_an_error_and_the_log_is_as_before(tmp_path: Path) -> None:
    """cli.5"""
    ended = on_a_full_disk(
        tmp_path,
        '"$PUBLISH" publish -checkpoint "$ROOT" -epoch 1 "$ROOT/exec/a/4" 4; echo $?;'
        '"$PUBLISH" resolve -checkpoint "$ROOT"',
    )
    assert ended.stdout.splitlines() == ["1", f"{tmp_path}/exec/a/3"], ended.stderr
    assert "No space left on device" in ended.stderr


def test_a_prune_without_room_for_its_records_removes_nothing(tmp_path: Path) -> None:
    """prune.5, prune.7"""
    ended = on_a_full_disk(
        tmp_path,
        '"$PUBLISH" prune -checkpoint "$ROOT" -keep 1; echo $?; ls exec/a; ls pub | wc -l',
    )
    assert ended.stdout.split() == ["1", "1", "2", "3", "4", "3"], ended.stderr
    assert "No space left on device" in ended.stderr


def test_a_prune_frees_a_disk_with_room_for_one_record(tmp_path: Path) -> None:
    """prune.5, prune.7: its own folders and one record; what it removes makes room for the rest."""
    ended = on_a_full_disk(
        tmp_path,
        'rm fill-0 fill-1 fill-2; for time in 1 2; do "$PUBLISH" prune -checkpoint "$ROOT" -keep 1 > /dev/null;'
        "echo $?; ls exec/a; done; ls pub | wc -l",
    )
    first, then = ["1", "2", "3", "4"], ["0", "3", "4"]
    assert ended.stdout.split() == [*first, *then, "1"], ended.stderr
