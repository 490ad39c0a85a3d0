"""What a watch says about saves that it does not publish."""

from __future__ import annotations

import json

import pytest

from publish.domain.errors import ConfigError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.layout import Save
from publish.domain.marker_framework import marker_framework, parse_folder, parse_marker
from publish.domain.ports import Page
from publish.domain.recognition import Recogniser
from publish.domain.root import PosixRoot
from publish.domain.watch import Incomplete, Scan, Watcher
from publish.domain.watch_notes import FIRST_NOTE_SECONDS, STALLED_SECONDS, WatchNotes
from tests.support.fakes import FakeReport, FakeStore
from tests.support.faults import Fault, FaultyStore
from tests.support.layouts import torch_zip

ROOT = PosixRoot(b"/ckpt")
SAVES = b"exec/a"
STATE = json.dumps({"global_step": 5}).encode()


class Told:
    """A store with files below SAVES, and what a watch of `framework` would say of it."""

    def __init__(self, files: dict[str, bytes] | None = None, framework: str = "hf", saves: bytes = SAVES) -> None:
        self.store = FakeStore()
        self.store.files = {
            (saves + b"/" if saves else b"") + name.encode(): data for name, data in (files or {}).items()
        }
        self.report = FakeReport()
        chosen = FRAMEWORKS[framework]
        self.recogniser = Recogniser(self.store, ROOT, FRAMEWORKS, chosen, saves)
        self.notes = WatchNotes(self.report, self.recogniser, ROOT, chosen, saves, started=0.0)
        self.watcher = Watcher(self.store, self.report, ROOT, chosen, saves, 1)

    def scan(self, now: float) -> None:
        self.notes.after_scan(self.watcher.scan(), now)

    def end(self, published: int = 0) -> list[str]:
        """What it says at the end, after the line with the reason."""
        self.notes.end(self.watcher.scan(), "stopped by a signal", published)
        return self.report.notes[1:]


def test_a_watch_that_begins_says_what_it_watches() -> None:
    """watch.8"""
    told = Told(framework="levanter")
    told.notes.begin(7, 10.0)
    assert told.report.notes == ["watching /ckpt/exec/a for saves of levanter (step-N), epoch 7, every 10s"]


@pytest.mark.parametrize(("published", "words"), [(0, "0 saves"), (1, "1 save"), (12, "12 saves")])
def test_a_watch_that_ends_says_why_and_how_much_it_published(published: int, words: str) -> None:
    """watch.8"""
    told = Told({"checkpoint-5/trainer_state.json": STATE})
    told.notes.end(Scan(1, []), "stopped by a signal", published)
    assert told.report.notes == [f"stopped by a signal: published {words}"]
    told.notes.failed(published)
    assert told.report.notes[1:] == [f"ended by an error: published {words}"]


def test_the_newest_save_that_is_not_complete_is_named_with_what_each_kind_lacks() -> None:
    """watch.8"""
    told = Told(
        {
            "checkpoint-1/weights": b"",
            "checkpoint-2/weights": b"",
            "checkpoint-30/trainer_state.json": b"{",
            "checkpoint-5/trainer_state.json": STATE,
        }
    )
    assert told.end() == [
        (
            "3 saves are not complete, the newest is /ckpt/exec/a/checkpoint-30: "
            "trainer_state.json is cut off (1), trainer_state.json is not there (2)"
        )
    ]


def test_one_save_that_is_not_complete_is_named() -> None:
    """watch.8"""
    told = Told({"checkpoint-1/weights": b""})
    assert told.end() == ["1 save is not complete, /ckpt/exec/a/checkpoint-1: trainer_state.json is not there"]


def test_a_folder_without_saves_is_described_in_the_first_minutes_once_and_at_the_end() -> None:
    """watch.8: at most five names."""
    told = Told({f"{name}/x": b"" for name in ("runs", "logs", "a", "b", "c", "d", "e")})
    told.scan(FIRST_NOTE_SECONDS - 1)
    assert told.report.notes == []
    told.scan(FIRST_NOTE_SECONDS)
    told.scan(FIRST_NOTE_SECONDS + 10)
    expected = "nothing in /ckpt/exec/a has the name of a save of hf (checkpoint-N); it holds a, b, c, d, e and 2 more"
    assert told.report.notes == [expected]
    told.report.notes.clear()
    assert told.end() == [expected]


def test_saves_that_never_appeared_are_said_with_what_is_beside_them() -> None:
    """watch.8: a wrong -attempt."""
    told = Told()
    told.store.files[b"exec/try-1/checkpoint-5/x"] = b""
    told.scan(FIRST_NOTE_SECONDS)
    assert told.report.notes == ["/ckpt/exec/a is not there yet; /ckpt/exec holds try-1"]
    told.report.notes.clear()
    assert told.end() == ["/ckpt/exec/a never appeared; /ckpt/exec holds try-1"]


def test_a_folder_that_is_gone_with_what_was_published_has_appeared() -> None:
    """watch.8: advice on where to save would be wrong"""
    assert Told().end(published=2) == ["/ckpt/exec/a holds no save any more"]


def test_an_empty_parent_is_named() -> None:
    """watch.8"""
    assert Told().end() == ["/ckpt/exec/a never appeared; /ckpt is empty"]


def test_the_nearest_folder_that_exists_is_named() -> None:
    """watch.8: a wrong -checkpoint."""
    told = Told()
    told.store.files[b"other/checkpoint-5/x"] = b""
    assert told.end() == ["/ckpt/exec/a never appeared; /ckpt holds other"]


def test_what_publish_itself_keeps_in_the_root_is_not_worth_a_name() -> None:
    """watch.8: the training ended before it saved anything."""
    told = Told()
    told.store.files[b".publish/begin/a"] = told.store.files[b"pub/x"] = b""
    assert told.end() == ["/ckpt/exec/a never appeared; /ckpt holds nothing else"]
    told.store.files[b"other/x"] = b""
    told.report.notes.clear()
    assert told.end() == ["/ckpt/exec/a never appeared; /ckpt holds other"]


def test_an_empty_root_as_the_folder_of_saves_is_empty() -> None:
    """watch.8"""
    assert Told(saves=b"").end() == ["/ckpt is empty (symbolic links are skipped)"]


def test_an_empty_folder_of_saves_is_empty() -> None:
    """watch.8"""

    class Directory(FakeStore):
        def exists(self, path: bytes) -> bool:
            return path == SAVES or super().exists(path)

    recogniser = Recogniser(Directory(), ROOT, FRAMEWORKS, FRAMEWORKS["hf"], SAVES)
    assert recogniser.describe_no_saves() == "/ckpt/exec/a is empty (symbolic links are skipped)"


def test_a_nested_layout_is_recognised() -> None:
    """watch.8: ms-swift's v0-<date>/checkpoint-5."""
    told = Told({"v0-20261202/checkpoint-5/trainer_state.json": STATE, "note": b""})
    assert told.end() == [
        (
            "nothing in /ckpt/exec/a has the name of a save of hf (checkpoint-N); it holds note, v0-20261202; "
            "/ckpt/exec/a/v0-20261202/checkpoint-5 looks like one: watch /ckpt/exec/a/v0-20261202 instead"
        )
    ]


@pytest.mark.parametrize(("saves", "where"), [(SAVES, "run/checkpoints"), (b"", "exec/a")])
def test_saves_two_levels_down_are_recognised(saves: bytes, where: str) -> None:
    """watch.8: MaxText's RUN/checkpoints/5; the root as SAVES."""
    folder = f"{saves.decode()}/{where}".lstrip("/")
    told = Told({f"{where}/checkpoint-5/trainer_state.json": STATE}, saves=saves)
    assert told.end()[0].endswith(f"; /ckpt/{folder}/checkpoint-5 looks like one: watch /ckpt/{folder} instead")


def test_saves_three_levels_down_are_not_looked_for() -> None:
    """watch.8: a note is not worth a walk through all that lies below SAVES."""
    told = Told({"a/b/c/checkpoint-5/trainer_state.json": STATE})
    assert told.end()[0].endswith("; it holds a")


def test_a_nested_save_of_another_framework_is_recognised() -> None:
    """watch.8: two mistakes at once."""
    told = Told({"v0/step-5/.metadata": b"x"})
    assert told.end()[0].endswith("; /ckpt/exec/a/v0/step-5 is a complete save for -framework dcp")


def test_a_nested_save_whose_name_fits_may_be_of_another_framework() -> None:
    """watch.8: dcp knows the name, and would never publish it."""
    told = Told({"v0/checkpoint-5/trainer_state.json": STATE}, framework="dcp")
    found = "/ckpt/exec/a/v0/checkpoint-5 is a complete save for -framework hf"
    assert told.end()[0].endswith(f"; {found}: watch /ckpt/exec/a/v0 instead, with that")


def test_a_save_of_another_framework_beside_published_ones_is_said_once_and_at_the_end() -> None:
    """watch.8: it is not published, and no other line would say so."""
    told = Told({"checkpoint-5/trainer_state.json": STATE, "runs/x": b"", "step-7/.metadata": b"x"})
    told.scan(FIRST_NOTE_SECONDS - 1)
    assert told.report.notes == []
    told.scan(FIRST_NOTE_SECONDS)
    told.scan(FIRST_NOTE_SECONDS + 10)
    expected = "/ckpt/exec/a/step-7 is a complete save for -framework dcp, and is not published"
    assert told.report.notes == [expected]
    told.report.notes.clear()
    assert told.end() == [expected]


def test_what_no_framework_takes_is_not_worth_a_note_beside_saves() -> None:
    """watch.8: logs, and a save that only the chosen framework can judge."""
    told = Told({"checkpoint-5/trainer_state.json": STATE, "runs/x": b"", "step-7/.metadata.tmp": b"x"})
    told.scan(FIRST_NOTE_SECONDS)
    assert told.report.notes == []
    assert told.end() == []


def test_a_folder_that_cannot_be_listed_is_not_worth_a_failure() -> None:
    """watch.8"""
    faulty = FaultyStore(FakeStore(), [Fault.LOST_REQUEST] * 1000)
    assert Recogniser(faulty, ROOT, FRAMEWORKS, FRAMEWORKS["hf"], SAVES).describe_neglected() is None


def test_a_file_among_the_names_is_not_looked_into() -> None:
    """watch.8: a directory does not list a file."""

    class Directory(FakeStore):
        def list_directories(self, path: bytes, token: str | None) -> Page:
            if path in self.files:
                raise ConfigError("not a folder")
            return super().list_directories(path, token)

        def list_files_in(self, path: bytes, token: str | None) -> Page:
            self.list_directories(path, token)
            return super().list_files_in(path, token)

    store = Directory()
    store.files = {SAVES + b"/log.txt": b"", SAVES + b"/v0/checkpoint-5/x": b""}
    recogniser = Recogniser(store, ROOT, FRAMEWORKS, FRAMEWORKS["hf"], SAVES)
    assert recogniser.describe_no_saves().endswith("watch /ckpt/exec/a/v0 instead")


def test_a_wrong_framework_is_corrected_when_names_do_not_fit() -> None:
    """watch.8: which row would take what is there; a file, too."""
    told = Told({"epoch=0-step=5.ckpt": torch_zip(b"")})
    assert told.end()[0].endswith("; /ckpt/exec/a/epoch=0-step=5.ckpt is a complete save for -framework lightning")


@pytest.mark.parametrize("at_end", [False, True])
def test_a_wrong_framework_is_corrected_when_names_fit(at_end: bool) -> None:  # noqa: FBT001
    """watch.8: a veRL save has a name that dcp knows, and no .metadata in the folder itself."""
    files = {
        "data.pt": torch_zip(b""),
        "actor/model_world_size_1_rank_0.pt": torch_zip(b""),
    }
    told = Told({f"global_step_5/{name}": data for name, data in files.items()}, framework="dcp")
    told.store.files[SAVES + b"/latest_checkpointed_iteration.txt"] = b"5"
    hint = "/ckpt/exec/a/global_step_5 is a complete save for -framework verl"
    if at_end:
        assert told.end() == [f"1 save is not complete, /ckpt/exec/a/global_step_5: .metadata is not there; {hint}"]
        return
    told.scan(10)
    told.scan(10 + FIRST_NOTE_SECONDS - 1)
    assert told.report.notes == []
    told.scan(10 + FIRST_NOTE_SECONDS)
    told.scan(10 + FIRST_NOTE_SECONDS + 1)
    assert told.report.notes == [f"/ckpt/exec/a/global_step_5 is not complete: .metadata is not there; {hint}"]


def test_a_save_that_stays_incomplete_for_half_an_hour_is_said_once() -> None:
    """watch.8: counted from when it was first the newest."""
    told = Told({"checkpoint-5/weights": b""})
    told.scan(100)
    told.scan(100 + STALLED_SECONDS - 1)
    assert told.report.notes == []
    told.scan(100 + STALLED_SECONDS)
    told.scan(100 + 2 * STALLED_SECONDS)
    stalled = "has not become complete for 30 minutes: trainer_state.json is not there"
    assert told.report.notes == [f"/ckpt/exec/a/checkpoint-5 {stalled}"]
    told.store.files[SAVES + b"/checkpoint-6/weights"] = b""
    told.scan(100 + 3 * STALLED_SECONDS)
    told.scan(100 + 4 * STALLED_SECONDS)
    assert told.report.notes[1:] == [f"/ckpt/exec/a/checkpoint-6 {stalled}"]


def test_saves_that_follow_each_other_quickly_and_never_become_complete_are_said_once() -> None:
    """watch.8: none of them is the newest for a minute."""
    told = Told(framework="dcp")
    for step in range(1, 10):
        told.store.files[SAVES + b"/checkpoint-%d/trainer_state.json" % step] = b'{"global_step": %d}' % step
        told.scan(step * FIRST_NOTE_SECONDS / 2)
    save = "/ckpt/exec/a/checkpoint-1"
    assert told.report.notes == [
        (
            f"{save} is not complete although a later save has begun: .metadata is not there; "
            f"{save} is a complete save for -framework hf"
        )
    ]


def test_an_overtaken_save_that_no_framework_takes_is_said_with_what_it_lacks() -> None:
    """watch.8"""
    told = Told({"checkpoint-1/weights": b"", "checkpoint-2/weights": b""})
    told.scan(10)
    told.scan(10 + FIRST_NOTE_SECONDS - 1)
    assert told.report.notes == []
    told.scan(10 + FIRST_NOTE_SECONDS)
    lack = "trainer_state.json is not there"
    assert told.report.notes == [f"/ckpt/exec/a/checkpoint-1 is not complete although a later save has begun: {lack}"]


def test_a_save_that_a_later_one_overtakes_and_that_then_becomes_complete_is_not_worth_a_note() -> None:
    """watch.8: asynchronous saves end late."""
    told = Told({"checkpoint-1/weights": b"", "checkpoint-2/weights": b""})
    told.scan(10)
    told.store.files[SAVES + b"/checkpoint-1/trainer_state.json"] = b'{"global_step": 1}'
    told.scan(10 + FIRST_NOTE_SECONDS)
    assert told.report.notes == []


def test_a_save_that_becomes_complete_in_time_is_not_worth_a_note() -> None:
    """watch.8"""
    told = Told({"checkpoint-5/weights": b""})
    told.scan(0)
    told.store.files[SAVES + b"/checkpoint-5/trainer_state.json"] = STATE
    told.scan(20)
    told.scan(STALLED_SECONDS + 30)
    assert told.report.notes == []


def test_a_hint_is_not_worth_a_failure() -> None:
    """watch.8"""
    faulty = FaultyStore(FakeStore(), [Fault.LOST_REQUEST] * 1000)
    recogniser = Recogniser(faulty, ROOT, FRAMEWORKS, FRAMEWORKS["hf"], SAVES)
    assert recogniser.other_framework([SAVES + b"/step-5"]) is None


def test_the_newest_may_be_of_a_framework_that_the_command_line_wrote() -> None:
    """watch.8: -framework marker."""
    chosen = marker_framework(parse_folder(b"x-([0-9]+)"), (parse_marker(b"done"),))
    report = FakeReport()
    recogniser = Recogniser(FakeStore(), ROOT, FRAMEWORKS, chosen, SAVES)
    notes = WatchNotes(report, recogniser, ROOT, chosen, SAVES, 0.0)
    notes.begin(1, 0.5)
    assert report.notes == ["watching /ckpt/exec/a for saves of marker (x-([0-9]+)), epoch 1, every 0.5s"]
    notes.end(Scan(1, [Incomplete(Save(1, b"exec/a/x-1"), "done is not there")]), "stopped by a signal", 0)
    assert report.notes[-1] == "1 save is not complete, /ckpt/exec/a/x-1: done is not there"
