"""`publish verify` and `-verify`: verify.1, verify.2, verify.7."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from publish.adapters.posix import PosixStore
from publish.domain.errors import FormatError
from tests.support.program import Result, call
from tests.support.samples import SAMPLES

TRAINER = SAMPLES / "hf" / "checkpoint-5"
DCP = SAMPLES / "dcp" / "step-200"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def publish(root: Path, step: int, sample: Path = DCP, *, cut: str = "") -> Path:
    """A published save; the file `cut` of it is a byte too short."""
    save = root / "exec" / f"step-{step}"
    shutil.copytree(sample, save)
    if cut:
        os.truncate(save / cut, (save / cut).stat().st_size - 1)
    assert call("publish", "-checkpoint", root, "-epoch", "1", save, str(step)).status == 0
    return save


def verify(root: Path, *words: str | Path) -> Result:
    return call("verify", "-checkpoint", root, *words)


def test_without_a_publication_nothing_is_printed(root: Path) -> None:
    """verify.1"""
    assert verify(root) == (0, b"", b"")
    assert verify(root, "-all") == (0, b"", b"")


def test_the_latest_publication_s_save_is_looked_at(root: Path) -> None:
    """verify.1"""
    publish(root, 1, cut="__0_0.distcp")
    save = publish(root, 2, TRAINER)
    assert verify(root) == (0, b"whole %s\n" % bytes(save), b"")


def test_with_all_each_save_is_looked_at_once(root: Path) -> None:
    """verify.1"""
    broken, whole = publish(root, 1, cut="__0_0.distcp"), publish(root, 2)
    assert call("publish", "-checkpoint", root, "-epoch", "2", broken, "1").status == 0
    why = b".metadata: it needs 1641 bytes of a file that has 1640: __0_0.distcp"
    assert verify(root, "-all") == (
        1,
        b"whole %s\nbroken %s: %s\n" % (bytes(whole), bytes(broken), why),
        b"publish: verify: broken saves: 1\n",
    )


def test_given_saves_are_looked_at_whether_published_or_not(root: Path) -> None:
    """verify.1"""
    published, other = publish(root, 1), root / "other"
    shutil.copytree(DCP, other)
    result = verify(root, published, other, root / "gone")
    assert result == (
        1,
        b"whole %s\nwhole %s\nbroken %s: not there\n" % (bytes(published), bytes(other), bytes(root / "gone")),
        b"publish: verify: broken saves: 1\n",
    )


def test_an_empty_folder_is_broken_and_one_that_is_gone_is_not_there(root: Path) -> None:
    """verify.1, verify.6"""
    (root / "empty/inside").mkdir(parents=True)
    (root / "dangling").symlink_to("nowhere")
    result = verify(root, root / "empty", root / "dangling", root / "gone")
    why = [line.partition(b": ")[2] for line in result.out.splitlines()]
    assert (result.status, why) == (1, [b"no file in it", b"not there", b"not there"])


def test_further_faults_are_counted(root: Path) -> None:
    """verify.1"""
    save = publish(root, 1, TRAINER, cut="model.safetensors")
    for name in ("optimizer.pt", "scheduler.pt"):
        (save / name).write_bytes(b"")
    result = verify(root)
    assert result.status == 1
    assert result.out.startswith(b"broken %s: model.safetensors: cut off: " % bytes(save))
    assert result.out.endswith(b" (and 2 more)\n")


def test_names_are_escaped(root: Path) -> None:
    """verify.1"""
    save = publish(root, 1)
    (save / "a\x1b[31m\n.pt").write_bytes(b"")
    assert verify(root).out == b"broken %s: a\\x1b[31m\\n.pt: empty\n" % bytes(save)


def test_all_and_a_save_exclude_each_other(root: Path) -> None:
    """verify.1"""
    result = verify(root, "-all", root / "save")
    assert (result.status, result.out, result.notes[0]) == (2, b"", "-all and SAVE exclude each other")
    assert verify(root, "").notes[0] == "SAVE is empty"


def test_a_save_outside_the_root_is_an_error(root: Path, tmp_path: Path) -> None:
    result = verify(root, tmp_path / "elsewhere")
    assert (result.status, result.out) == (1, b"")


def test_metadata_that_is_too_large_is_named(root: Path) -> None:
    """verify.6"""
    save = publish(root, 1)
    os.truncate(save / ".metadata", 64 * 2**20 + 1)
    result = verify(root)
    assert (result.status, result.out) == (0, b"whole %s\n" % bytes(save))
    assert result.notes == [f"over 64 MiB and not read: {save}/.metadata"]


@pytest.mark.parametrize("verb", ["verify", "resolve"])
def test_a_file_that_cannot_be_read_is_an_error_and_no_verdict(
    root: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """verify.2, verify.7"""

    def refuse(_store: PosixStore, _path: bytes, _start: int, _length: int) -> bytes:
        raise FormatError("not readable: Permission denied")

    publish(root, 1)
    save = publish(root, 2, TRAINER)
    monkeypatch.setattr(PosixStore, "read_range", refuse)
    words = () if verb == "verify" else ("-verify",)
    result = call(verb, "-checkpoint", root, *words)
    assert (result.status, result.out) == (1, b"")
    assert result.notes == [f"{save.relative_to(root)}/config.json: not readable: Permission denied"]


def test_resolve_takes_the_newest_whole_save_and_names_the_newer_ones(root: Path) -> None:
    """verify.2"""
    publish(root, 1)
    whole, broken, gone = publish(root, 2), publish(root, 3, cut=".metadata"), publish(root, 4)
    shutil.rmtree(gone)
    assert call("resolve", "-checkpoint", root) == (0, bytes(gone) + b"\n", b"")
    result = call("resolve", "-checkpoint", root, "-verify")
    assert (result.status, result.out) == (0, bytes(whole) + b"\n")
    assert result.notes == [
        f"broken {gone}: not there",
        f"broken {broken}: .metadata: cut off: 1082 bytes",
    ]


def test_resolve_fails_if_no_published_save_is_whole(root: Path) -> None:
    """verify.2"""
    assert call("resolve", "-checkpoint", root, "-verify") == (0, b"", b"")
    save = publish(root, 1, cut=".metadata")
    result = call("resolve", "-checkpoint", root, "-verify")
    assert (result.status, result.out) == (1, b"")
    assert result.notes == [
        f"broken {save}: .metadata: cut off: 1082 bytes",
        "no save to resume from is whole (each is named above with its fault): 1 looked at",
    ]


def test_a_save_that_is_one_file_is_looked_at(root: Path) -> None:
    save = root / "step=5.ckpt"
    shutil.copy(SAMPLES / "torch" / "zip.pt", save)
    assert call("publish", "-checkpoint", root, "-epoch", "1", save, "5").status == 0
    assert verify(root).out == b"whole %s\n" % bytes(save)
    os.truncate(save, 1000)
    assert verify(root).out.startswith(b"broken %s: step=5.ckpt: cut off" % bytes(save))


def prune(root: Path, keep: int, *words: str) -> Result:
    return call("prune", "-checkpoint", root, "-keep", str(keep), "-verify", *words)


def test_prune_keeps_the_newest_whole_saves_and_what_is_newer(root: Path) -> None:
    """verify.4"""
    saves = [
        publish(root, 1),
        publish(root, 2),
        publish(root, 3, cut=".metadata"),
        publish(root, 4),
        publish(root, 5, cut=".metadata"),
    ]
    why = ".metadata: cut off: 1082 bytes"
    dry = prune(root, 2, "-dry-run")
    assert (dry.status, dry.out) == (0, b"would remove %s\n" % bytes(saves[0]))
    assert prune(root, 2) == (
        0,
        b"removed %s\n" % bytes(saves[0]),
        f"publish: broken {saves[4]}: {why}\npublish: broken {saves[2]}: {why}\n".encode(),
    )


def test_prune_removes_nothing_if_no_published_save_is_whole(root: Path) -> None:
    """verify.4"""
    saves = [publish(root, step, cut=".metadata") for step in (1, 2)]
    result = prune(root, 1)
    assert (result.status, result.out) == (1, b"")
    assert all(save.is_dir() for save in saves)


def test_prune_without_verify_keeps_a_broken_save(root: Path) -> None:
    """prune.1"""
    publish(root, 1)
    broken = publish(root, 2, cut=".metadata")
    assert call("prune", "-checkpoint", root, "-keep", "1").status == 0
    assert broken.is_dir()
