"""Nothing that a verb said is lost with the power, and nothing stays that no prune removes (layout.7, prune.7).

Each verb is recorded on a filesystem that keeps only what was synced, and the power is cut after every operation.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.power import Finding, Laboratory, filesystem, said_on, unsynced
from tests.support.power_trees import entry, published, save, save_files
from tests.support.strict_model import Model

pytestmark = pytest.mark.power


def publish(laboratory: Laboratory, step: int) -> list[str]:
    path = f"{laboratory.root}/{save(step).decode()}"
    return ["publish", "-checkpoint", laboratory.root, "-epoch", "1", path, str(step)]


def prune(laboratory: Laboratory, keep: int = 1) -> list[str]:
    return ["prune", "-checkpoint", laboratory.root, "-keep", str(keep)]


def watch(laboratory: Laboratory) -> list[str]:
    words = ["-framework", "hf", "-epoch", "1", "-attempt", "a", "-interval", "100ms"]
    return ["watch", "-checkpoint", laboratory.root, *words]


def with_log(*steps: int) -> Model:
    """A root whose log holds these steps, all of it durable."""
    return filesystem(*(save_files(step) for step in steps), published(*steps))


def assert_none(findings: Sequence[Finding]) -> None:
    """Each broken rule is shown once, with the fewest steps that lead there."""
    shortest: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda finding: len(finding.steps)):
        shortest.setdefault(finding.broken, finding)
    assert not findings, f"{len(findings)} findings\n\n" + "\n\n".join(map(str, shortest.values()))


def test_the_first_publication_survives(laboratory: Laboratory) -> None:
    recording = laboratory.record(filesystem(save_files(1)), *publish(laboratory, 1))
    assert recording.statuses == (0,)
    assert_none(laboratory.findings(recording))


def test_a_later_publication_survives(laboratory: Laboratory) -> None:
    recording = laboratory.record(filesystem(save_files(1), save_files(2), published(1)), *publish(laboratory, 2))
    assert recording.statuses == (0,)
    assert_none(laboratory.findings(recording, kept=[1]))


def test_what_a_published_save_holds_survives(laboratory: Laboratory) -> None:
    """data.1: the job wrote the save and did not sync it."""
    recording = laboratory.record(unsynced(filesystem(), save_files(1)), *publish(laboratory, 1))
    assert recording.statuses == (0,)
    assert_none(laboratory.findings(recording))


def test_what_a_save_holds_that_a_watch_published_survives(laboratory: Laboratory) -> None:
    """data.1: the job wrote the saves and did not sync them."""
    before = unsynced(filesystem(save_files(1), published(1)), {**save_files(2), **save_files(3)})
    recording = laboratory.record_watch(before, *watch(laboratory), until=b"published " + entry(3))
    assert recording.statuses == (0,)
    assert_none(laboratory.findings(recording, kept=[1]))


def test_what_is_already_published_survives_though_the_first_publish_was_killed(laboratory: Laboratory) -> None:
    first = laboratory.record(filesystem(save_files(1)), *publish(laboratory, 1))
    found: list[Finding] = []
    for model, steps in first.killed():
        again = laboratory.record(model, *publish(laboratory, 1))
        assert again.statuses == (0,)
        assert said_on(again.ended()).published == {entry(1)}
        found += told(steps, laboratory.findings(again))
    assert_none(found)


def test_what_a_watch_publishes_survives(laboratory: Laboratory) -> None:
    before = filesystem(save_files(1), save_files(2), save_files(3), published(1))
    recording = laboratory.record_watch(before, *watch(laboratory), until=b"published " + entry(3))
    assert recording.statuses == (0,)
    assert_none(laboratory.findings(recording, kept=[1]))


def test_a_watch_makes_durable_what_a_killed_publish_of_its_epoch_left_in_the_log(laboratory: Laboratory) -> None:
    """data.5: the watch counts it as done, so it has to be."""
    first = laboratory.record(filesystem(save_files(1)), *publish(laboratory, 1))
    found: list[Finding] = []
    for model, steps in first.killed():
        watched = laboratory.record_watch(model, *watch(laboratory))
        assert watched.statuses == (0,)
        found += told([*steps, "a watch, which ends with 0"], laboratory.findings(watched.afterwards(), kept=[1]))
    assert_none(found)


def test_a_prune_can_be_cut_anywhere(laboratory: Laboratory) -> None:
    recording = laboratory.record(with_log(1, 2, 3), *prune(laboratory))
    assert recording.statuses == (0,)
    assert said_on(recording.ended()).removed == {save(1), save(2)}
    assert_none(laboratory.findings(recording, kept=[3], doomed=[1, 2]))


def test_a_prune_that_finishes_a_killed_one_can_be_cut_anywhere(laboratory: Laboratory) -> None:
    """data.6: what the killed one removed is made durable before its record is dropped."""
    first = laboratory.record(with_log(1, 2), *prune(laboratory))
    found: list[Finding] = []
    for model, steps in first.killed():
        second = laboratory.record(model, *prune(laboratory))
        assert second.statuses == (0,)
        found += told([*steps, "another prune"], laboratory.findings(second, kept=[2], doomed=[1]))
    assert_none(found)


def test_two_prunes_side_by_side_can_be_cut_anywhere(laboratory: Laboratory) -> None:
    """prune.8, data.6: one stands still after each of its operations while the other goes by."""
    alone = laboratory.record(with_log(1, 2), *prune(laboratory))
    found: list[Finding] = []
    statuses = set()
    for number in range(1, len(alone.ops)):
        both = laboratory.record_beside(with_log(1, 2), prune(laboratory), prune(laboratory), number)
        statuses.add(both.statuses)
        beside = f"(after {number} operations another prune goes by from start to end)"
        found += told([beside], laboratory.findings(both, kept=[2], doomed=[1]))
    assert_none(found)
    assert statuses == {(0, 0)}


def test_what_is_published_while_a_prune_stands_still_survives(laboratory: Laboratory) -> None:
    """prune.2, prune.8: the prune stands still after each of its operations while another save is published."""
    before = filesystem(save_files(1), save_files(2), save_files(3), published(1, 2))
    alone = laboratory.record(before, *prune(laboratory))
    found: list[Finding] = []
    for number in range(1, len(alone.ops)):
        both = laboratory.record_beside(before, prune(laboratory), publish(laboratory, 3), number)
        assert both.statuses == (0, 0)
        beside = f"(after {number} operations step 3 is published)"
        found += told([beside], laboratory.findings(both, kept=[2], doomed=[1]))
    assert_none(found)


def told(before: Sequence[str], findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with what happened before."""
    return [finding._replace(steps=[*before, *finding.steps]) for finding in findings]
