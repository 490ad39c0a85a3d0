"""The tests of power loss see a sync that is missing: each fault, put in on purpose, is found by one of them."""

from __future__ import annotations

import sys

import pytest

from tests.power.test_power_loss import prune, publish, with_log
from tests.support import faulty_program
from tests.support.power import Finding, Laboratory, filesystem
from tests.support.power_trees import save_files

pytestmark = pytest.mark.power


def found_with(fault: str, laboratory: Laboratory) -> list[Finding]:
    program = (sys.executable, faulty_program.__file__, fault)
    first = laboratory.record(filesystem(save_files(1)), *publish(laboratory, 1), program=program)
    findings = laboratory.findings(first)
    for model, _ in first.killed():
        findings += laboratory.findings(laboratory.record(model, *publish(laboratory, 1), program=program))
    removal = laboratory.record(with_log(1, 2), *prune(laboratory), program=program)
    findings += laboratory.findings(removal, kept=[2], doomed=[1])
    assert {*first.statuses, *removal.statuses} == {0}
    return findings


@pytest.mark.parametrize("fault", faulty_program.FAULTS)
def test_a_missing_sync_is_found(fault: str, laboratory: Laboratory) -> None:
    findings = found_with(fault, laboratory)
    assert findings


def test_without_a_fault_nothing_is_found(laboratory: Laboratory) -> None:
    """Guards the harness: the launcher itself changes nothing."""
    assert not found_with("none", laboratory)
