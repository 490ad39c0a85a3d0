"""`log` and `retract`, as the user meets them."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.ownership import give_to
from tests.support.program import CLEAN, PROGRAM, call, run
from tests.support.s3_roots import make_place, private_directory, wire_to
from tests.support.servers import KeyedServer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    for epoch, step in ((1, 100), (1, 200), (2, 150)):
        save = folder / f"exec/{epoch}/checkpoint-{step}"
        save.mkdir(parents=True)
        (save / "trainer_state.json").write_text(json.dumps({"global_step": step}))
        assert run("publish", "-checkpoint", folder, "-epoch", str(epoch), save, str(step)).status == 0
    for entry in (folder / "pub").iterdir():
        os.utime(entry, (0, 1_790_000_000.9))
    return folder


def text_of(picture: Path) -> str:
    return " ".join(ET.parse(picture).getroot().itertext())


def test_each_publication_is_a_line_and_the_latest_is_last_and_marked(root: Path) -> None:
    """log.1"""
    result = run("log", "-checkpoint", root)
    assert (result.status, result.err) == (0, b"")
    assert result.out.decode() == (
        f"2026-09-21T14:13:20Z  epoch 1  step 100  {root}/exec/1/checkpoint-100\n"
        f"2026-09-21T14:13:20Z  epoch 1  step 200  {root}/exec/1/checkpoint-200\n"
        f"2026-09-21T14:13:20Z  epoch 2  step 150  {root}/exec/2/checkpoint-150  (latest)\n"
    )
    assert run("log", "-checkpoint", root, "-n", "1").out == result.out.splitlines(keepends=True)[-1]
    assert run("log", "-checkpoint", root, "-n", "0").status == 2


def test_json_is_one_object_a_line(root: Path) -> None:
    """log.1"""
    lines = run("log", "-checkpoint", root, "-json").out.splitlines()
    objects = [json.loads(line) for line in lines]
    names = sorted(path.name for path in (root / "pub").iterdir())
    assert [one["entry"] for one in objects] == names
    assert objects[-1] == {
        "entry": names[-1],
        "epoch": 2,
        "step": 150,
        "save": f"{root}/exec/2/checkpoint-150",
        "published_at": "2026-09-21T14:13:20Z",
        "latest": True,
    }
    assert [one["latest"] for one in objects] == [False, False, True]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-(2**62), "0001-01-01T00:00:00Z"), (2**62, "9999-12-31T23:59:59Z"), (-1, "1969-12-31T23:59:59Z")],
)
def test_any_time_of_an_entry_is_written_as_rfc_3339(root: Path, tmp_path: Path, seconds: int, shown: str) -> None:
    """log.1, log.2: on a filesystem that can hold it; others hold the nearest that they can."""
    for entry in (root / "pub").iterdir():
        os.utime(entry, (0, seconds))
        held = entry.stat().st_mtime
    result = run("log", "-checkpoint", root, "-n", "1", "-json", "-svg", tmp_path / "run.svg")
    published_at = json.loads(result.out)["published_at"]
    assert published_at == shown if held == seconds else datetime.fromisoformat(published_at).timestamp() == held
    assert result.err == b""


def test_nothing_published_is_nothing_printed(tmp_path: Path) -> None:
    """log.1, log.2: and an empty picture."""
    picture = tmp_path / "run.svg"
    assert run("log", "-checkpoint", tmp_path, "-svg", picture) == (0, b"", b"")
    assert "nothing is published yet" in picture.read_text()


def test_a_name_with_control_characters_is_escaped_for_people_and_exact_in_json(root: Path) -> None:
    """log.1"""
    name = "00000000000000000009-00000000000000000001-MEFGE"  # "a\nb"
    (root / "pub" / name).touch()
    assert run("log", "-checkpoint", root, "-n", "1").out.endswith(b"/a\\nb  (latest)\n")
    assert json.loads(run("log", "-checkpoint", root, "-n", "1", "-json").out)["save"] == f"{root}/a\nb"


def test_the_picture_is_written_beside_the_printed_log(root: Path, tmp_path: Path) -> None:
    """log.2"""
    picture = tmp_path / "run.svg"
    result = run("log", "-checkpoint", root, "-svg", picture)
    assert len(result.out.splitlines()) == 3
    assert "epoch 2" in text_of(picture)
    assert sorted(os.listdir(tmp_path)) == ["root", "run.svg"]
    result = run("log", "-checkpoint", root, "-svg", tmp_path / "missing/run.svg")
    assert (result.status, result.out) == (1, b"")
    assert "cannot write the picture" in result.notes[0]


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(root: Path, tmp_path: Path) -> None:
    """log.2: a folder in its place, so that only the rename fails."""
    (tmp_path / "run.svg").mkdir()
    assert run("log", "-checkpoint", root, "-svg", tmp_path / "run.svg").status == 1
    assert sorted(os.listdir(tmp_path)) == ["root", "run.svg"]


def test_a_picture_replaces_neither_a_link_nor_a_pipe(root: Path, tmp_path: Path) -> None:
    """log.2: nor a device, as with `-svg /dev/stdout`."""
    (tmp_path / "link.svg").symlink_to("run.svg")
    assert run("log", "-checkpoint", root, "-svg", tmp_path / "link.svg").status == 0
    assert (tmp_path / "link.svg").is_symlink()
    assert "epoch 2" in text_of(tmp_path / "run.svg")
    os.mkfifo(tmp_path / "pipe")
    result = run("log", "-checkpoint", root, "-svg", tmp_path / "pipe")
    assert (result.status, result.out) == (1, b"")
    assert "not a regular file" in result.notes[0]
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["link.svg", "pipe", "root", "run.svg"]


def test_no_picture_is_written_through_a_link_of_another_user(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """log.2: it would replace a file of this user."""
    precious, picture = tmp_path / "precious", tmp_path / "own.svg"
    precious.write_text("precious")
    picture.symlink_to("theirs.svg")
    (tmp_path / "theirs.svg").symlink_to(precious)
    give_to(monkeypatch, tmp_path / "theirs.svg", os.geteuid() + 1)
    result = call("log", "-checkpoint", root, "-svg", picture)
    assert (result.status, result.out) == (1, b"")
    assert result.notes == [
        f"cannot write the picture (a symbolic link of another user, uid {os.geteuid() + 1}): {tmp_path}/theirs.svg"
    ]
    assert precious.read_text() == "precious"


def test_links_in_a_circle_and_a_removed_working_directory_are_faults(root: Path, tmp_path: Path) -> None:
    """log.2"""
    (tmp_path / "loop.svg").symlink_to("loop.svg")
    result = run("log", "-checkpoint", root, "-svg", tmp_path / "loop.svg")
    assert (result.status, result.out) == (1, b"")
    assert result.notes[0].startswith("cannot write the picture (Too many levels of symbolic links): ")
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"rmdir {gone}; exec {PROGRAM} log -checkpoint {root} -svg out.svg"
    ended = subprocess.run(["sh", "-c", line], cwd=gone, env=CLEAN, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "publish: cannot write the picture (No such file or directory): out.svg\n"


def test_times_in_the_picture_are_told_apart(root: Path, tmp_path: Path) -> None:
    """log.2"""
    for seconds, entry in enumerate(sorted((root / "pub").iterdir())):
        os.utime(entry, (0, 1_790_000_000 + 10 * seconds))
    assert run("log", "-checkpoint", root, "-svg", tmp_path / "run.svg").status == 0
    times = [text for text in ET.parse(tmp_path / "run.svg").getroot().itertext() if text.startswith("Sep 21")]
    assert times == [f"Sep 21 14:13:{second}" for second in (20, 25, 30, 35, 40)]


def test_on_s3_the_log_costs_one_listing(seaweedfs: KeyedServer, tmp_path: Path) -> None:
    """log.1"""
    place = make_place(seaweedfs)
    with wire_to(seaweedfs) as wire:
        creds = private_directory(tmp_path / "creds", seaweedfs, wire.endpoint)
        place.fill("exec/a/checkpoint-1/trainer_state.json", body=b'{"global_step": 1}')
        flags = ("-checkpoint", place.url, "-creds", creds)
        save = f"{place.url}/exec/a/checkpoint-1"
        assert run("publish", *flags, "-epoch", "1", save, "1").status == 0
        before = len(wire.asked)
        (line,) = run("log", *flags, "-json").out.splitlines()
        assert len(wire.asked) == before + 1
        assert run("retract", *flags, "-delete", save).status == 0
        assert place.paths() == []
    published_at = datetime.fromisoformat(json.loads(line)["published_at"])
    assert abs((datetime.now(UTC) - published_at).total_seconds()) < 600
    assert json.loads(line)["save"] == save


def test_a_retracted_save_stays_and_resolve_gives_what_is_left(root: Path) -> None:
    """retract.1"""
    save = root / "exec/2/checkpoint-150"
    result = run("retract", "-checkpoint", root, save)
    assert result.status == 0
    assert result.out.startswith(b"retracted 00000000000000000002-00000000000000000150-")
    assert f"(epoch 2, step 150, {save})\n".encode() in result.out
    assert "a watch that is started on that folder publishes it again" in result.notes[0]
    assert save.exists()
    assert run("resolve", "-checkpoint", root).out == f"{root}/exec/1/checkpoint-200\n".encode()
    again = run("retract", "-checkpoint", root, save)
    assert (again.status, again.out) == (1, b"")
    assert again.notes == [f"not a published save (publish log lists them): {save}"]


def test_with_delete_the_save_goes(root: Path) -> None:
    """retract.1"""
    save = root / "exec/2/checkpoint-150"
    result = run("retract", "-checkpoint", root, "-delete", save)
    assert result.status == 0
    assert result.out.endswith(f"removed {save}\n".encode())
    assert not save.exists()
    assert not any((root / ".publish/prune").iterdir())


@pytest.mark.parametrize("flags", [(), ("-delete",)])
def test_a_path_with_control_characters_is_escaped_when_it_is_retracted(root: Path, flags: tuple[str, ...]) -> None:
    """retract.1, layout.8: another program wrote the entry."""
    save = root / "a\nb"
    save.mkdir()
    (root / "pub/00000000000000000009-00000000000000000001-MEFGE").touch()
    assert run("prune", "-checkpoint", root).status == 1
    result = run("retract", "-checkpoint", root, *flags, save)
    assert (result.status, len(result.out.splitlines())) == (0, 1 + len(flags))
    assert all(rb"/a\nb" in line for line in result.out.splitlines())
    assert run("prune", "-checkpoint", root).status == 0


def test_the_root_is_not_a_save(root: Path) -> None:
    """retract.1"""
    assert run("retract", "-checkpoint", root, root).status == 1
    assert run("retract", "-checkpoint", root).status == 2
