"""`-framework marker`: what its flags take, and that a save so described is recognised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from publish.domain.errors import UsageError
from publish.domain.layout import Check, Need, Tracker
from publish.domain.marker_framework import (
    marker_framework,
    parse_folder,
    parse_forbid,
    parse_marker,
    parse_tracker,
)
from tests.support.layouts import torch_zip
from tests.support.watched_directory import WatchedFolder


@pytest.mark.parametrize(
    ("text", "need"),
    [
        (b"done", Need(b"done", Check.FULL)),
        (b"done:any", Need(b"done", Check.ANY)),
        (b"a/b.json:json", Need(b"a/b.json", Check.JSON)),
        (b"state.json:json:global_step=step", Need(b"state.json", Check.JSON, step_key="global_step")),
        (b"state.json:json:committed", Need(b"state.json", Check.JSON, set_key="committed")),
        (b"*_rank_*.pt:ranks", Need(b"*_rank_*.pt", Check.RANKS)),
        (b".:zip", Need(b".", Check.ZIP)),
    ],
)
def test_a_marker_is_a_pattern_and_a_check(text: bytes, need: Need) -> None:
    """watch.2"""
    assert parse_marker(text) == need


@pytest.mark.parametrize(
    ("parse", "text", "why"),
    [
        (parse_marker, b"", "not the path of a file in the save"),
        (parse_marker, b"/etc/x", "not the path of a file in the save: /etc/x"),
        (parse_marker, b"a//b", "not the path of a file in the save"),
        (parse_marker, b"../a", "not the path of a file in the save"),
        (parse_marker, b"a:whole", r"unknown check \(one of any, full, json, zip, dcp, index, ranks\): whole"),
        (parse_marker, b"a:zip:key", "only the check json takes a key: a:zip:key"),
        (parse_folder, b"step-[0-9]+", r"needs a group for the step, such as step-\(\[0-9\]\+\): step-"),
        (parse_folder, b"step-(", "not a regular expression .*: step-"),
        (parse_forbid, b"../../x", "not a path in the save, nor a name beside it"),
        (parse_forbid, b"a/*.tmp", "not a path in the save, nor a name beside it"),
        (parse_tracker, b"a/latest", "not the name of a file beside the saves: a/latest"),
        (parse_tracker, b"==", "not the name of a file beside the saves"),
    ],
)
def test_what_can_never_be_right_is_a_usage_error(parse: Callable[[bytes], object], text: bytes, why: str) -> None:
    """watch.2, cli.5"""
    with pytest.raises(UsageError, match=why):
        parse(text)


def test_a_tracker_may_have_to_be_exact() -> None:
    """watch.2"""
    assert parse_tracker(b"latest") == Tracker(b"latest")
    assert parse_tracker(b"latest==") == Tracker(b"latest", exact=True)


def test_markers_that_no_save_can_have_together_are_a_usage_error() -> None:
    """watch.2"""
    folder = parse_folder(b"([0-9]+)")
    with pytest.raises(UsageError, match="one file"):
        marker_framework(folder, (parse_marker(b".:zip"), parse_marker(b"a")))
    with pytest.raises(UsageError, match="-ranks needs a marker with the check ranks"):
        marker_framework(folder, (parse_marker(b"a"),), ranks=3)


def test_a_save_that_is_a_folder_is_recognised(tmp_path: Path) -> None:
    """watch.2"""
    framework = marker_framework(
        parse_folder(b"run-([0-9]+)"),
        (parse_marker(b"part-*.pt:ranks"), parse_marker(b"*/mark.json:json:step=step")),
        forbids=(parse_forbid(b"../{}.lock"),),
        tracker=parse_tracker(b"latest=="),
        ranks=2,
    )
    watched = WatchedFolder(tmp_path, framework)
    save = watched.saves / "run-7"
    (save / "sub").mkdir(parents=True)
    lock = watched.saves / "run-7.lock"
    lock.touch()
    steps: list[Callable[[], object]] = [
        lambda: (save / "part-0.pt").write_text("x"),
        lambda: (save / "part-1.pt").write_text("x"),
        lambda: (save / "sub/mark.json").write_text('{"step": 7}'),
        lambda: (watched.saves / "latest").write_text("run-7"),
        lock.unlink,
    ]
    for step in steps:
        assert watched.scan() == []
        step()
    assert watched.scan() == ["run-7"]


def test_a_save_that_is_a_file_is_recognised(tmp_path: Path) -> None:
    """watch.2"""
    watched = WatchedFolder(
        tmp_path, marker_framework(parse_folder(rb"ep\d+-ba(\d+)-rank0\.pt"), (parse_marker(b".:zip"),))
    )
    file = watched.saves / "ep1-ba20-rank0.pt"
    file.write_bytes(torch_zip(b"x")[:-1])
    assert watched.scan() == []
    file.write_bytes(torch_zip(b"x"))
    assert watched.scan() == ["ep1-ba20-rank0.pt"]


def test_a_group_that_is_not_a_number_is_not_a_step(tmp_path: Path) -> None:
    """watch.2"""
    watched = WatchedFolder(tmp_path, marker_framework(parse_folder(b"run-(.+)"), (parse_marker(b"a:any"),)))
    for name in ("run-x", f"run-{2**64}", f"run-{'9' * 240}", "run-8"):
        (watched.saves / name).mkdir()
        (watched.saves / name / "a").touch()
    assert watched.scan() == ["run-8"]
