"""Executions that begin beside others, beside prunes and beside publishers: programs and rules.

An actor's name is its attempt and the number of its node: `a-1`.
"""

from __future__ import annotations

from functools import cache

from publish.domain.begin import BeginOptions, begin
from publish.domain.entry import Entry
from publish.domain.errors import ConfigError
from publish.domain.executions import Execution, recorded
from publish.domain.ports import Namespace, Store
from publish.domain.publish import publish_save
from tests.model.explorer import Check, Program, View
from tests.model.scopes import is_whole, rules, save_path
from tests.model.states import World
from tests.support.fakes import FakeReport
from tests.support.retrying import retrying


def beginning(attempt: str, options: BeginOptions = BeginOptions(), *, then_publishes: int | None = None) -> Program:  # noqa: B008  (a tuple)
    """A node of an attempt; with `then_publishes`, its execution publishes the save of this step."""

    def program(store: Store, report: FakeReport) -> None:
        execution = begin(retrying(store), attempt.encode(), options)
        report.said.append(("began", execution))
        if then_publishes is not None:
            entry = Entry.of(execution.epoch, then_publishes, save_path(then_publishes))
            publish_save(retrying(store), report, entry)

    return program


def execution_rules(initial: World) -> Check:
    """The rules of publishing and pruning, and those of executions."""
    of_saves = rules(initial)

    def check(view: View) -> str | None:
        return (
            _one_answer_for_an_attempt(view)
            or _an_epoch_for_each_attempt(view)
            or _later_attempts_have_greater_epochs(view)
            or _what_is_resumed_from_is_there(view)
            or _a_refusal_has_a_reason(view)
            or of_saves(view)
        )

    return check


def _answers(view: View) -> set[Execution]:
    said = [one for moment in view.moments.values() for what, one in moment.said if what == "began"]
    return {one for one in said if isinstance(one, Execution)}


@cache
def _on_record(world: World) -> dict[bytes, Execution]:
    store = world.store()
    found = {attempt: recorded(store, attempt) for attempt in world.entries(Namespace.BEGIN)}
    return {attempt: execution for attempt, execution in found.items() if execution is not None}


def _one_answer_for_an_attempt(view: View) -> str | None:
    """begin.1"""
    answers = _answers(view)
    if len({answer.attempt for answer in answers}) < len(answers):
        return f"one attempt, several answers: {answers}"
    return None


def _an_epoch_for_each_attempt(view: View) -> str | None:
    """begin.5"""
    epochs = [execution.epoch for execution in _on_record(view.world).values()]
    return f"two attempts share an epoch: {epochs}" if len(set(epochs)) < len(epochs) else None


def _later_attempts_have_greater_epochs(view: View) -> str | None:
    """begin.5: the attempt of which no node had begun when another attempt's answer came to be."""
    on_record = _on_record(view.world)
    for creation in view.created:
        if creation.namespace is not Namespace.BEGIN:
            continue
        begun = {actor.partition("-")[0].encode() for actor in creation.begun}
        for attempt in on_record.keys() - begun - {creation.name}:
            if on_record[attempt].epoch <= on_record[creation.name].epoch:
                return f"began later and has no greater epoch: {on_record[attempt]} after {on_record[creation.name]}"
    return None


def _what_is_resumed_from_is_there(view: View) -> str | None:
    """begin.5, prune.12: from the answer until the execution has published or a newer one has begun."""
    newest = max((execution.epoch for execution in _on_record(view.world).values()), default=0)
    published = {entry.epoch for entry in view.published()}
    for answer in _answers(view):
        entry = answer.resume
        if entry is None or answer.epoch < newest or answer.epoch in published:
            continue
        if entry.name not in view.world.entries(Namespace.PUB) or not is_whole(view.world, entry.path):
            return f"what the newest execution resumes from is gone: {answer}"
    return None


def _a_refusal_has_a_reason(view: View) -> str | None:
    """begin.5: an attempt is refused only beside a prune, or because of what it asked for."""
    beside_a_prune = any(name.startswith("prune") for name in view.begun)
    for name, moment in view.moments.items():
        expected = isinstance(moment.failure, ConfigError) and (beside_a_prune or "epoch" in str(moment.failure))
        if name.startswith(("a-", "b-", "c-")) and moment.failure is not None and not expected:
            return f"{name} is refused: {moment.failure}"
    return None
