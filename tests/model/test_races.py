"""Every interleaving of prunes and publishers, with every actor killed at every point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from publish.domain import prune as prune_module
from publish.domain import publish as publish_module
from publish.domain.removal import Remover
from publish.domain.retention import PlannedRemoval, apply_retention
from tests.model.explorer import CounterExample, Explorer, Program, World
from tests.model.scopes import pruning, publishing, retracting, root_with, rules, watching


class Scope(NamedTuple):
    root: World
    programs: Mapping[str, Program]
    losses: int = 0

    def explorer(self) -> Explorer:
        return Explorer(self.root, self.programs, rules(self.root), losses=self.losses)


TWO_PRUNES = Scope(root_with(range(1, 4)), {"prune-1": pruning(1), "prune-2": pruning(2)})
OLD_SAVE = Scope(root_with(range(1, 3)), {"prune": pruning(1), "publish": publishing(2, 1)})
SAME_ENTRY = Scope(root_with(range(1, 3)), {"prune": pruning(1), "publish": publishing(1, 1)})

SMALL = {
    "a save is taken back beside a prune": Scope(
        root_with(range(1, 4)), {"retract": retracting(2), "prune": pruning(1)}
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
    """race.1, race.2, race.3, prune.7, prune.8."""
    record_property("states", SMALL[name].explorer().run())


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FULL)
def test_no_interleaving_of_more_actors_breaks_a_rule(name: str) -> None:
    """race.1, race.2, race.3, prune.7, prune.8."""
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
