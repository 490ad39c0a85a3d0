"""Every interleaving of prunes and publishers, with every actor killed at every point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from publish.domain import prune as prune_module
from publish.domain import publish as publish_module
from publish.domain.removal import Remover
from publish.domain.retention import PlannedRemoval, apply_retention
from tests.model.explorer import CounterExample, Explorer, Program, View
from tests.model.scopes import (
    is_whole,
    pruning,
    publishing,
    retracting,
    retracting_only,
    root_with,
    rules,
    save_path,
    the_end_is_in_order,
    watching,
)
from tests.model.states import World
from tests.support.fakes import FakeReport


class Scope(NamedTuple):
    root: World
    programs: Mapping[str, Program]
    losses: int = 0
    retracted: int | None = None

    def explorer(self) -> Explorer:
        return Explorer(self.root, self.programs, rules(self.root, self.retracted), losses=self.losses)


TWO_PRUNES = Scope(root_with(range(1, 4)), {"prune-1": pruning(1), "prune-2": pruning(2)})
OLD_SAVE = Scope(root_with(range(1, 3)), {"prune": pruning(1), "publish": publishing(2, 1)})
SAME_ENTRY = Scope(root_with(range(1, 3)), {"prune": pruning(1), "publish": publishing(1, 1)})
LATEST_TAKEN_BACK = Scope(
    root_with(range(1, 4)), {"retract only": retracting_only(3), "prune": pruning(2)}, retracted=3
)

SMALL = {
    "a save is taken back beside a prune": Scope(
        root_with(range(1, 4)), {"retract": retracting(2), "prune": pruning(1)}
    ),
    "a save is taken back, and stays, beside a prune": Scope(
        root_with(range(1, 4)), {"retract only": retracting_only(2), "prune": pruning(1)}, retracted=2
    ),
    "the latest save is taken back, and stays, beside a prune": LATEST_TAKEN_BACK,
    "the latest save is taken back and removed beside a prune": Scope(
        root_with(range(1, 4)), {"retract": retracting(3), "prune": pruning(2)}, retracted=3
    ),
    "two prunes": TWO_PRUNES,
    "an old save is published again beside a prune": SAME_ENTRY,
    "an old save is published under a new epoch beside a prune": OLD_SAVE,
    "two watches of one epoch and a prune": Scope(
        root_with(range(1, 3)), {"watch-1": watching(1), "watch-2": watching(1), "prune": pruning(1)}
    ),
    "a prune was killed, and its save is published again beside a prune": Scope(
        root_with(range(1, 3), removing=(1,)), {"prune": pruning(1), "publish": publishing(2, 1)}
    ),
}
FULL = {
    "retract, watch and prune": Scope(
        root_with(range(1, 4)), {"retract": retracting(2), "watch": watching(1), "prune": pruning(1)}
    ),
    "a save is taken back twice, and stays or not, beside a prune": Scope(
        root_with(range(1, 4)),
        {"retract only": retracting_only(3), "retract": retracting(3), "prune": pruning(2)},
        retracted=3,
    ),
    "the latest save is taken back, and stays, beside a watch and a prune": Scope(
        root_with(range(1, 4)),
        {"retract only": retracting_only(3), "watch": watching(1), "prune": pruning(2)},
        retracted=3,
    ),
    "retract, publish and prune": Scope(
        root_with(range(1, 4)), {"retract": retracting(2), "publish": publishing(1, 2), "prune": pruning(2)}
    ),
    "three prunes": Scope(root_with(range(1, 4)), {**TWO_PRUNES.programs, "prune-3": pruning(1)}),
    "two watches of new saves and a prune": Scope(
        root_with(range(1, 3), published=False), {"watch-1": watching(1), "watch-2": watching(2), "prune": pruning(1)}
    ),
    "publish, watch and prune, with a lost reply": Scope(
        root_with(range(1, 3)), {"watch": watching(1), "publish": publishing(2, 1), "prune": pruning(1)}, losses=1
    ),
    "publish, watch and prune after a killed prune": Scope(
        root_with(range(1, 3), removing=(1,)),
        {"watch": watching(1, scans=2), "publish": publishing(2, 1), "prune": pruning(1)},
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_no_interleaving_breaks_a_rule(name: str, record_property: Callable[[str, object], None]) -> None:
    """race.1, race.2, race.3, prune.7, prune.8, retract.1."""
    record_property("states", SMALL[name].explorer().run())


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FULL)
def test_no_interleaving_of_more_actors_breaks_a_rule(name: str) -> None:
    """race.1, race.2, race.3, prune.7, prune.8, retract.1."""
    states = FULL[name].explorer().run()
    print(f"{name}: {states:,} states")  # noqa: T201  (how much was explored is part of the result)


def test_a_publisher_that_does_not_look_again_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """race.1: the explorer can fail, and its counterexample can be replayed."""
    monkeypatch.setattr(publish_module, "_check_not_removed", lambda _store, _entry: None)
    with pytest.raises(CounterExample, match="gone without a prune that began afterwards") as found:
        OLD_SAVE.explorer().run()
    moves = str(found.value).rpartition("replay: ")[2]
    with pytest.raises(CounterExample, match="gone without a prune that began afterwards"):
        OLD_SAVE.explorer().replay(moves)


def taken_back_beside_a_prune(step: int, keep: int) -> Explorer:
    """Checks only that the save that is taken back, and stays, is there."""

    def check(view: View) -> str | None:
        return None if is_whole(view.world, save_path(step)) else "the save that was taken back is gone"

    return Explorer(root_with(range(1, 4)), {"retract only": retracting_only(step), "prune": pruning(keep)}, check)


@pytest.mark.parametrize("step", [2, 3])
def test_a_save_that_is_taken_back_stays_beside_a_prune_that_would_keep_it(step: int) -> None:
    """retract.1"""
    taken_back_beside_a_prune(step, keep=2).run()


def test_a_prune_that_has_read_the_log_may_still_remove_a_save_that_is_taken_back() -> None:
    """retract.1: a prune that keeps one had decided to remove the save of step 2."""
    with pytest.raises(CounterExample, match="the save that was taken back is gone"):
        taken_back_beside_a_prune(2, keep=1).run()


@pytest.mark.parametrize("retraction", [retracting, retracting_only])
@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.parametrize("keep", [1, 2])
def test_a_retract_beside_a_prune_ends_as_one_after_the_other(
    retraction: Callable[[int], Program], step: int, keep: int
) -> None:
    """retract.2, prune.1: if the latest is retracted after the prune that keeps one has decided, nothing is left."""
    root, programs = root_with(range(1, 4)), {"retract": retraction(step), "prune": pruning(keep)}
    Explorer(root, programs, the_end_is_in_order(root, programs)).run()


def test_a_retract_of_the_latest_beside_a_prune_that_keeps_one_can_leave_nothing() -> None:
    """retract.1, prune.1: as if it had come after the prune (retract.2)."""
    programs = {"retract only": retracting_only(3), "prune": pruning(1)}
    with pytest.raises(CounterExample, match="the newest publication is lost: epoch 1 step 2"):
        LATEST_TAKEN_BACK._replace(programs=programs).explorer().run()


@pytest.mark.parametrize("retraction", [retracting, retracting_only])
def test_an_empty_log_that_no_actor_reports_is_found_out(
    retraction: Callable[[int], Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """retract.2"""
    monkeypatch.setattr(FakeReport, "nothing_left", lambda _self: None)
    root, programs = root_with(range(1, 4)), {"retract": retraction(3), "prune": pruning(1)}
    with pytest.raises(CounterExample, match="no publication is left, and no actor says so"):
        Explorer(root, programs, the_end_is_in_order(root, programs)).run()


@pytest.mark.parametrize(
    ("keep", "harm"), [(1, "the newest publication is lost"), (2, "gone without a prune that began afterwards")]
)
def test_two_prunes_beside_an_old_save_that_is_published_again_are_the_known_exception(keep: int, harm: str) -> None:
    """race.3"""
    programs = {"prune-1": pruning(1), "prune-2": pruning(keep), "publish": publishing(2, 1)}
    with pytest.raises(CounterExample, match=harm):
        OLD_SAVE._replace(programs=programs).explorer().run()


def test_a_killed_retraction_that_no_prune_finishes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """retract.1"""
    monkeypatch.setattr(prune_module._Prune, "_retracted", lambda *_: set())
    # A root of its own: the checks remember what they found.
    scope = Scope(root_with(range(7, 10)), {"retract": retracting(9), "prune": pruning(2)}, retracted=9)
    with pytest.raises(CounterExample, match="one more prune does not finish a retraction: epoch 1 step 9"):
        scope.explorer().run()


def test_a_prune_that_drops_the_record_of_an_entry_in_the_log_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """race.2."""
    remove_saves = Remover.remove_saves

    def careless(self: Remover, planned: list[PlannedRemoval], _remaining: object) -> None:
        remove_saves(self, planned, ())

    monkeypatch.setattr(Remover, "remove_saves", careless)
    with pytest.raises(CounterExample, match="a save that no entry names"):
        TWO_PRUNES.explorer().run()


def test_a_prune_that_counts_an_entry_whose_path_is_being_removed_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """race.1, prune.1: its publisher takes the entry back, and the newest publication would be gone."""
    monkeypatch.setattr(
        prune_module, "apply_retention", lambda log, policy, _removals, *rest: apply_retention(log, policy, (), *rest)
    )
    with pytest.raises(CounterExample, match="the newest publication is lost"):
        SMALL["a prune was killed, and its save is published again beside a prune"].explorer().run()
