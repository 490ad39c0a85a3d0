"""The recipes of the troubleshooting page do what the page says."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.program import PROGRAM, run, start

PAGE = (Path(__file__).parents[2] / "docs/troubleshooting.md").read_text()


def recipe(heading: str) -> str:
    """The one shell block of a section."""
    found = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, heading
    (block,) = re.findall(r"^```sh\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)
    return str(block)


def _literals() -> str:
    """Every string of the program, a `…` for each value that it quotes."""
    texts = []
    for file in (Path(__file__).parents[2] / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                texts.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


LITERALS = _literals()
SECTION = PAGE.partition("\n## Messages\n")[2].partition("\n## Tasks\n")[0]
FRAGMENTS = [
    fragment.strip()
    for heading in re.findall(r"^### (.*)$", SECTION, re.MULTILINE)
    for message in re.findall(r"`([^`]+)`", heading)
    for fragment in re.split(r"…|\(…|^(?:watch|run|store|credentials|prune|pub/): ", message)
    if fragment.strip(" ():")
]


def test_the_page_has_messages() -> None:
    assert len(FRAGMENTS) > 30


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_heading_is_what_the_program_says(fragment: str) -> None:
    """cli.5"""
    assert fragment.strip(" ()") in LITERALS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Saves of the steps 100 to 500, each published."""
    for step in range(100, 600, 100):
        save = folder(tmp_path / "root", step)
        save.mkdir(parents=True)
        (save / "trainer_state.json").write_text(json.dumps({"global_step": step}))
        assert run("publish", "-checkpoint", tmp_path / "root", "-epoch", "1", save, str(step)).status == 0
    return tmp_path / "root"


def folder(root: Path, step: int) -> Path:
    return root / f"exec/a/checkpoint-{step}"


def follow(heading: str, root: Path, save: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a section's recipe as a user would type it, beside the root."""
    commands = recipe(heading).replace("ROOT", str(root)).replace("SAVE", str(save))
    return subprocess.run(
        ["/bin/sh", "-c", commands],
        cwd=root.parent,
        env={"PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_newest_save_is_broken_and_every_start_dies_on_it(root: Path) -> None:
    """verify.1, retract.1"""
    newest = folder(root, 500)
    (newest / "model.safetensors").touch()
    done = follow("The newest save is broken and every start dies on it", root, newest)
    broken, retracted, resolved = done.stdout.splitlines()
    assert broken.startswith(f"broken {newest}: model.safetensors: ")
    assert retracted.startswith("retracted ")
    assert resolved == str(folder(root, 400))
    assert (done.returncode, newest.exists()) == (0, True)


def test_i_want_to_go_back_to_step_300(root: Path) -> None:
    """begin.6, log.1, run.2"""
    (root.parent / "train.py").write_text("import os; print(os.environ['DISPATCH_RESUME'])")
    done = follow("I want to go back to step 300", root, folder(root, 300))
    *log, resumed = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line.split("  ")[2] for line in log] == [f"step {step}" for step in range(100, 600, 100)]
    assert resumed == str(folder(root, 300))


def test_i_want_to_undo_that(root: Path) -> None:
    """retract.1, publish.4: what `retract` printed is what `publish publish` needs."""
    newest = folder(root, 500)
    assert "(epoch 1, step 500, " in run("retract", "-checkpoint", root, newest).out.decode()
    assert run("resolve", "-checkpoint", root).out.decode() == f"{folder(root, 400)}\n"
    done = follow("I want to undo that", root, newest)
    assert done.returncode == 0, done.stderr
    assert run("resolve", "-checkpoint", root).out.decode() == f"{newest}\n"


def test_the_run_resumed_from_another_step_than_i_expected(root: Path) -> None:
    """run.1, verify.2: the newest is broken, and the lines that the page names are there."""
    (folder(root, 500) / "model.safetensors").touch()
    done = follow("The run resumed from another step than I expected", root)
    assert done.stdout.splitlines()[4].endswith(f"step 500  {folder(root, 500)}  (latest)")
    assert f"broken {folder(root, 500)}: model.safetensors: " in done.stdout
    broken, resumed, *_ = run("run", "-checkpoint", root, "-framework", "hf", "--", "true").notes
    assert broken.startswith(f"broken {folder(root, 500)}: model.safetensors: ")
    assert resumed.startswith("run: epoch 2, attempt ")
    assert resumed.endswith(f", resuming from {folder(root, 400)}")


def test_the_final_scan_failed_and_a_watch_publishes_what_command_saved(root: Path) -> None:
    """watch.6"""
    save = folder(root, 600)
    save.mkdir()
    (save / "trainer_state.json").write_text('{"global_step": 600}')
    heading = "`run: the final scan failed; run publish watch to publish what COMMAND saved`"
    words = recipe(heading).replace("ROOT", str(root)).replace("ATTEMPT", "a").split()
    with start(*words[1:]) as process:
        assert process.stdout
        assert b"(epoch 1, step 600, " in process.stdout.readline()
        process.terminate()
        assert process.wait(60) == 0
    assert run("resolve", "-checkpoint", root).out.decode() == f"{save}\n"


def test_no_published_save_is_whole_and_one_is_resumed_from_all_the_same(root: Path) -> None:
    """verify.2, begin.6: as the page says."""
    for step in range(100, 600, 100):
        (folder(root, step) / "model.safetensors").touch()
    line = ("run", "-checkpoint", root, "-framework", "hf")
    refused = run(*line, "--", "true")
    assert refused.status == 1
    assert refused.notes[-1].startswith("no save to resume from is whole (each is named above with its fault): ")
    back = ("-from", folder(root, 300))
    assert run(*line, *back, "--", "true").status == 1
    resumed = run(*line, *back, "-verify=false", "--", "sh", "-c", "echo $DISPATCH_RESUME")
    assert (resumed.status, resumed.out.decode()) == (0, f"{folder(root, 300)}\n")


def test_i_want_to_publish_a_save_by_hand(root: Path) -> None:
    """publish.4"""
    save = root / "exec/b/checkpoint-400"
    save.mkdir(parents=True)
    (save / "trainer_state.json").write_text('{"global_step": 400}')
    done = follow("I want to publish a save by hand", root, save)
    assert done.returncode == 0, done.stderr
    assert run("resolve", "-checkpoint", root).out.decode() == f"{save}\n"
    begun = json.loads(run("begin", "-checkpoint", root, "-json").out)
    assert (begun["epoch"], begun["resume"]) == (9, str(save))


def test_what_would_prune_remove(root: Path) -> None:
    """prune.10"""
    before = sorted(root.rglob("*"))
    done = follow("What would prune remove?", root)
    assert done.stdout.splitlines() == [f"would remove {folder(root, step)}" for step in (100, 200)]
    for step, why in ((300, "within -keep 3"), (400, "within -keep 3"), (500, "the latest publication")):
        assert re.search(rf"would keep {folder(root, step)}: .*{why}", done.stderr)
    assert sorted(root.rglob("*")) == before


def test_the_disk_is_full(root: Path) -> None:
    """prune.1: test_small_disk.py has the disk."""
    done = follow("The disk is full", root)
    assert sorted(done.stdout.splitlines()) == [f"removed {folder(root, step)}" for step in range(100, 500, 100)]
    assert done.returncode == 0


def test_a_kept_save_is_not_there(root: Path) -> None:
    """verify.4, retract.1"""
    (folder(root, 500) / "trainer_state.json").unlink()
    folder(root, 500).rmdir()
    assert "a kept save is not there" in run("prune", "-checkpoint", root, "-keep", "9").err.decode()
    assert follow("`a kept save is not there`", root, folder(root, 500)).returncode == 0
    assert run("resolve", "-checkpoint", root).out.decode() == f"{folder(root, 400)}\n"
    assert run("prune", "-checkpoint", root, "-keep", "9").err == b""


def test_the_save_is_being_removed_and_is_the_newest(root: Path) -> None:
    """retract.1, prune.7: a prune was killed before those after it were taken back."""
    (entry,) = [path.name for path in (root / "pub").iterdir() if "500" in path.name[21:41]]
    records = root / ".publish/prune"
    records.mkdir(parents=True)
    (records / entry).touch()
    assert "the save to resume from is being removed" in run("begin", "-checkpoint", root).err.decode()
    assert follow("`the save is being removed (…)`", root, folder(root, 500)).returncode == 0
    assert not folder(root, 500).exists()
    assert f"DISPATCH_RESUME={folder(root, 400)}\n" in run("begin", "-checkpoint", root).out.decode()
