"""Every row of the table, against saves that are written one operation at a time in the order of the sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.layouts import WRITTEN, WrittenSave, in_some_order, megatron, orbax_in_place
from tests.support.recording import replay
from tests.support.watched import WatchedFolder

# What is recognised on an object store only.
IN_PLACE = {orbax_in_place}
CASES = [case for case in WRITTEN if case[1] not in IN_PLACE]
ORDERS = range(4)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("framework", "written"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_a_watch_that_scans_after_every_operation_publishes_at_the_end_and_not_before(
    framework: str, written: Callable[[], WrittenSave], order: int, tmp_path: Path
) -> None:
    """watch.1, watch.2: the save cut off after any operation is not complete."""
    watched = WatchedFolder(tmp_path, framework)
    phases, after = written()
    operations = list(in_some_order(phases, order))
    for operation in replay(operations[:-1], watched.saves):
        assert watched.scan() == [], operation
        assert watched.scan() == [], f"not written on since {operation}"
    for _ in replay([operations[-1], *in_some_order(after, order)], watched.saves):
        watched.scan()
    watched.scan()
    assert len(watched.published()) == 1


@pytest.mark.parametrize("order", ORDERS)
def test_dcp_does_not_take_a_save_of_megatron(order: int, tmp_path: Path) -> None:
    """watch.3: .metadata is not its last file, and `-framework megatron` knows which is."""
    watched = WatchedFolder(tmp_path, "dcp")
    for operation in replay(list(in_some_order([*megatron().phases, *megatron().after], order)), watched.saves):
        assert watched.scan() == [], operation
