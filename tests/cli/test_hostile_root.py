"""What another user may put into publish's own folders hangs no verb and leads none into another root."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from publish.domain.entry import Entry
from tests.support.directories import fill, tree
from tests.support.program import Word, run

SAVE = "exec/a/checkpoint-1"
ENTRY = Entry.of(1, 1, SAVE.encode()).name.decode()
RECORDS = (f".publish/prune/{ENTRY}", ".publish/epoch/00000000000000000001", ".publish/begin/a")

VERBS: dict[str, Callable[[Path], list[Word]]] = {
    "resolve": lambda root: ["resolve", "-checkpoint", root],
    "log": lambda root: ["log", "-checkpoint", root],
    "log -svg": lambda root: ["log", "-checkpoint", root, "-svg", root / "picture.svg"],
    "verify": lambda root: ["verify", "-checkpoint", root, "-all"],
    "begin": lambda root: ["begin", "-checkpoint", root, "-attempt", "b"],
    "publish": lambda root: ["publish", "-checkpoint", root, "-epoch", "2", root / SAVE, "1"],
    "prune": lambda root: ["prune", "-checkpoint", root, "-keep", "1"],
    "prune -dry-run": lambda root: ["prune", "-checkpoint", root, "-dry-run"],
    "retract": lambda root: ["retract", "-checkpoint", root, root / SAVE],
    "run": lambda root: ["run", "-checkpoint", root, "-framework", "hf", "-attempt", "c", "--", "true"],
}
READERS = {"resolve", "log", "log -svg", "verify"}
WRITERS = {*VERBS} - READERS
# The verbs that look into each folder.
USERS = {
    "pub": {*VERBS},
    ".publish": WRITERS | {"log -svg"},
    ".publish/prune": WRITERS,
    ".publish/epoch": {"begin", "run", "prune", "prune -dry-run"},
    ".publish/begin": {"begin", "run", "log -svg"},
    ".publish/tmp": {"begin", "run"},
}
# The verbs that look at each file. `begin` and `run` read the record of their own attempt only.
FILES = {
    "pub/entry": {*VERBS} - {"publish"},
    RECORDS[0]: USERS[".publish/prune"],
    RECORDS[1]: USERS[".publish/epoch"],
    RECORDS[2]: {"log -svg"},
    ".publish/begin/b": {"log -svg", "begin"},
    ".publish/begin/c": {"log -svg", "run"},
}


def make_root(root: Path) -> None:
    """With one publication, and a folder for each kind of record."""
    fill(root, f"pub/{ENTRY}")
    (root / SAVE).mkdir(parents=True)
    (root / SAVE / "trainer_state.json").write_text('{"global_step": 1}')
    for folder in USERS:
        (root / folder).mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("place", USERS)
def test_a_fifo_in_the_place_of_a_folder_hangs_no_verb(root: Path, place: str, verb: str) -> None:
    """layout.5, layout.9"""
    make_root(root)
    shutil.rmtree(root / place)
    os.mkfifo(root / place)
    result = run(*VERBS[verb](root))
    if verb in USERS[place]:
        assert result.status == 1
        assert any(note.endswith(f"not a directory: {root / place}") for note in result.notes)
    else:
        assert result.status == 0, result.err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("place", FILES)
def test_a_fifo_in_the_place_of_an_entry_or_a_record_hangs_no_verb(root: Path, place: str, verb: str) -> None:
    """layout.4, begin.4"""
    make_root(root)
    os.mkfifo(root / place)
    result = run(*VERBS[verb](root))
    if verb in FILES[place]:
        assert result.status == 1
        assert f"not a regular file (move it out of the folder): {root / place}" in result.notes
    else:
        assert result.status == 0, result.err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("place", USERS)
def test_a_link_in_the_place_of_a_folder_leads_no_verb_into_another_root(root: Path, place: str, verb: str) -> None:
    """layout.5, layout.9: only `pub` may be a link, for reading, where this user or root made it."""
    other = root.parent / "other"
    make_root(other)
    fill(other, *RECORDS)
    before = tree(other)
    make_root(root)
    shutil.rmtree(root / place)
    (root / place).symlink_to(other / place)
    result = run(*VERBS[verb](root))
    follows = place == "pub" and verb in {*READERS, "begin", "prune -dry-run"}
    if verb in USERS[place] and not follows:
        assert result.status == 1
        refusal = "this is a symbolic link, and publish writes and removes nothing through one"
        assert f"{refusal}: {root / place}" in result.notes
    else:
        assert result.status == 0, result.err
    assert tree(other) == before
