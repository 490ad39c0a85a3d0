"""watch.8 with the installed program: what it says at its end when it published nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import start
from tests.support.samples import SAMPLES


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/exec").mkdir(parents=True)
    return tmp_path / "root"


def save(folder: Path, step: int = 5, *, is_complete: bool = True) -> None:
    """A save of Trainer."""
    place = folder / f"checkpoint-{step}"
    place.mkdir(parents=True)
    (place / "model.safetensors").touch()
    if is_complete:
        (place / "trainer_state.json").write_text(f'{{"global_step": {step}}}')


def last_words(root: Path, framework: str) -> str:
    """What a watch says at its end about what it did not publish."""
    line = ("watch", "-checkpoint", root, "-framework", framework, "-epoch", "1", "-attempt", "a", "-interval", "1h")
    with start(*line) as process:
        assert process.stderr is not None
        assert b": watching " in process.stderr.readline()
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    ended, words = err.decode().splitlines()
    assert ended == "publish: watch: stopped by a signal: published 0 saves"
    return words.removeprefix("publish: watch: ")


def test_a_wrong_framework(root: Path) -> None:
    """watch.8: the names fit, or they do not."""
    save(root / "exec/a")
    hint = f"{root}/exec/a/checkpoint-5 is a complete save for -framework hf"
    assert last_words(root, "dcp").endswith(f": .metadata is not there; {hint}")
    assert last_words(root, "megatron").endswith(f"; it holds checkpoint-5; {hint}")


def test_a_wrong_attempt(root: Path) -> None:
    """watch.8"""
    save(root / "exec/try-1")
    assert last_words(root, "hf") == f"{root}/exec/a never appeared; {root}/exec holds try-1"


def test_a_nested_layout(root: Path) -> None:
    """watch.8: ms-swift's v0-20261202/checkpoint-5."""
    nested = root / "exec/a/v0-20261202"
    save(nested)
    assert last_words(root, "hf").endswith(f"; {nested}/checkpoint-5 looks like one: watch {nested} instead")


def test_saves_that_stay_half_written(root: Path) -> None:
    """watch.8"""
    for step in (5, 10):
        save(root / "exec/a", step, is_complete=False)
    newest = f"{root}/exec/a/checkpoint-10"
    assert (
        last_words(root, "hf") == f"2 saves are not complete, the newest is {newest}: trainer_state.json is not there"
    )


def test_links_to_saves(root: Path) -> None:
    """watch.1, watch.8"""
    save(root / "elsewhere")
    (root / "exec/a").mkdir()
    (root / "exec/a/checkpoint-5").symlink_to(root / "elsewhere/checkpoint-5")
    assert last_words(root, "hf") == f"{root}/exec/a is empty (symbolic links are skipped)"


def test_an_empty_root(root: Path) -> None:
    """watch.8"""
    (root / "exec").rmdir()
    assert last_words(root, "hf") == f"{root}/exec/a never appeared; {root} is empty"


def test_a_save_of_a_distributed_checkpoint_below_another_folder(root: Path) -> None:
    """watch.8: the wrong framework and a nested layout at once."""
    place = root / "exec/a/v0/step-200"
    place.parent.mkdir(parents=True)
    place.symlink_to(SAMPLES / "dcp/step-200")
    assert last_words(root, "hf").endswith("; it holds v0")
    place.unlink()
    place.mkdir()
    (place / ".metadata").write_bytes((SAMPLES / "dcp/step-200/.metadata").read_bytes())
    assert last_words(root, "hf").endswith(f"; {place} is a complete save for -framework dcp")
