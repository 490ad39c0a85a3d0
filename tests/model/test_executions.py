"""Every interleaving of executions that begin, with every actor killed at every point."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import pytest

from publish.domain import begin as begin_module
from publish.domain.begin import BeginOptions
from publish.domain.entry import Entry
from publish.domain.executions import resumed_by_newest
from publish.domain.ports import Store
from publish.domain.prune import Guards, prune
from publish.domain.retention import Policy
from tests.model.executions import beginning, execution_rules
from tests.model.explorer import CounterExample, Explorer, Program
from tests.model.scopes import pruning, publishing, root_with, save_path
from tests.model.states import World
from tests.support.fakes import FakeReport
from tests.support.retrying import retrying


class Scope(NamedTuple):
    root: World
    programs: Mapping[str, Program]
    losses: int = 0

    def explorer(self) -> Explorer:
        return Explorer(self.root, self.programs, execution_rules(self.root), losses=self.losses)


BACK = BeginOptions(save=save_path(1))
TWO_SAVES = root_with(range(1, 3))
# The save of step 2 is there for an execution of epoch 1 that comes back and publishes it late.
ONE_OF_TWO = root_with(range(1, 3), unpublished=(2,))

NODE_OF_A, NODE_OF_B = beginning("a"), beginning("b")
GOES_BACK = beginning("a", BACK)
TWO_NODES = Scope(TWO_SAVES, {"a-1": NODE_OF_A, "a-2": NODE_OF_A})
TWO_ATTEMPTS = Scope(TWO_SAVES, {"a-1": NODE_OF_A, "b-1": NODE_OF_B})
TWO_OF_EACH = {**TWO_NODES.programs, "b-1": NODE_OF_B, "b-2": NODE_OF_B}
GOING_BACK = Scope(TWO_SAVES, {"a-1": GOES_BACK, "prune": pruning(1)})
TWO_GIVEN_EPOCHS = Scope(
    TWO_SAVES,
    {
        "a-1": beginning("a", BeginOptions(6)),
        "b-1": beginning("b", BeginOptions(5)),
        "c-1": beginning("c", BeginOptions(5)),
    },
)

SMALL = {
    "two nodes": TWO_NODES,
    "two attempts": TWO_ATTEMPTS,
    "three nodes of two attempts": Scope(TWO_SAVES, {**TWO_NODES.programs, "b-1": NODE_OF_B}),
    "going back beside a prune": GOING_BACK,
    "two nodes go back beside a prune": Scope(TWO_SAVES, {"a-1": GOES_BACK, "a-2": GOES_BACK, "prune": pruning(1)}),
    "an older execution publishes late, beside a prune": Scope(
        ONE_OF_TWO,
        {"a-1": beginning("a"), "publish": publishing(1, 2), "prune": pruning(1)},
    ),
}
FULL = {
    "two nodes of two attempts each": Scope(TWO_SAVES, TWO_OF_EACH),
    "two nodes of two attempts each, and a lost reply": Scope(root_with(range(0)), TWO_OF_EACH, losses=1),
    "an older execution publishes late, beside two nodes and a prune": Scope(
        ONE_OF_TWO, {**TWO_NODES.programs, "publish": publishing(1, 2), "prune": pruning(1)}
    ),
    "going back beside two prunes": Scope(TWO_SAVES, {**GOING_BACK.programs, "prune-2": pruning(1)}),
    "an execution publishes, beside another attempt and a prune": Scope(
        root_with(range(1, 4), unpublished=(3,)),
        {"a-1": beginning("a", BACK, then_publishes=3), "b-1": beginning("b", BACK), "prune": pruning(1)},
    ),
    "going back beside a prune, and a lost reply": Scope(TWO_SAVES, GOING_BACK.programs, losses=2),
    "two attempts with the scheduler's epochs": TWO_GIVEN_EPOCHS,
}


@pytest.mark.parametrize("name", SMALL)
def test_no_interleaving_breaks_a_rule(name: str, record_property: Callable[[str, object], None]) -> None:
    """begin.1, begin.5, prune.12."""
    record_property("states", SMALL[name].explorer().run())


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FULL)
def test_no_interleaving_of_more_actors_breaks_a_rule(name: str) -> None:
    """begin.1, begin.5, prune.12."""
    states = FULL[name].explorer().run()
    print(f"{name}: {states:,} states")  # noqa: T201  (how much was explored is part of the result)


def test_an_answer_that_does_not_look_for_a_removal_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """begin.5: the prune may have looked before the attempt was on record."""
    monkeypatch.setattr(begin_module, "_check_resumable", lambda _store, _execution: None)
    with pytest.raises(CounterExample, match="what the newest execution resumes from is gone"):
        GOING_BACK.explorer().run()


def test_a_prune_that_does_not_look_again_is_found_out() -> None:
    """prune.12: the attempt may be on record since the prune decided."""

    def looking_once(store: Store, report: FakeReport) -> None:
        found: list[Entry | None] = []

        def resumed(log: Collection[Entry]) -> Entry | None:
            if not found:
                found.append(resumed_by_newest(store, log))
            return found[0]

        prune(retrying(store), report, Policy(1), map, Guards(resumed))

    with pytest.raises(CounterExample, match="what the newest execution resumes from is gone"):
        Scope(TWO_SAVES, {**GOING_BACK.programs, "prune": looking_once}).explorer().run()


def test_an_answer_other_than_what_is_on_record_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """begin.1"""
    monkeypatch.setattr(begin_module, "_decide", begin_module._propose)
    with pytest.raises(CounterExample, match="one attempt, several answers"):
        Scope(ONE_OF_TWO, {**TWO_NODES.programs, "publish": publishing(1, 2)}).explorer().run()


def test_a_taken_epoch_that_is_used_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """begin.5"""
    monkeypatch.setattr(begin_module, "claimant", lambda _store, _epoch: b"b")
    with pytest.raises(CounterExample, match="two attempts share an epoch"):
        TWO_ATTEMPTS.explorer().run()


def test_a_given_epoch_that_is_below_a_claimed_one_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """begin.5"""
    monkeypatch.setattr(begin_module, "claimed_epochs", lambda _store: [])
    with pytest.raises(CounterExample, match="began later and has no greater epoch"):
        TWO_GIVEN_EPOCHS.explorer().run()
