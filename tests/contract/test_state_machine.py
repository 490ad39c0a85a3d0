"""Any sequence of calls: a store answers as the model does."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyThere
from publish.domain.ports import Area, Page
from publish.domain.saves import MARKERS
from tests.support.fakes import FakeStore
from tests.support.grounds import Ground

areas = st.sampled_from(Area)
names = st.sampled_from([Entry.of(epoch, step, b"run/1").name for epoch in range(2) for step in range(3)])
saves = st.sampled_from(["run/checkpoint-1", "run/checkpoint-10", "run", "run/checkpoint-1/inner", "other"])
files = st.sampled_from(["trainer_state.json", ".metadata", "weights", "inner/x"])


def everything(page: Callable[[str | None], Page]) -> list[bytes]:
    part = page(None)
    found = list(part.names)
    while part.after is not None:
        part = page(part.after)
        found += part.names
    return sorted(found)


def test_a_store_answers_as_the_model_does(make_ground: Callable[[], Ground]) -> None:
    """L5, L7, publish.2, watch.1, prune.1, prune.3."""

    class AgainstTheModel(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.ground = make_ground()
            self.store = self.ground.store()
            self.model = FakeStore(page_size=10_000)

        @rule(area=areas, name=names)
        def create(self, area: Area, name: bytes) -> None:
            outcomes = []
            for store in (self.store, self.model):
                try:
                    store.create(area, name)
                except AlreadyThere:
                    outcomes.append("taken")
                else:
                    outcomes.append("made")
            assert outcomes[0] == outcomes[1]

        @rule(area=areas, some=st.sets(names, min_size=1))
        def remove(self, area: Area, some: set[bytes]) -> None:
            assert self.store.remove(area, sorted(some)) == self.model.remove(area, sorted(some)) == {}

        @rule(save=saves, file=files, body=st.sampled_from([b"", b"x"]))
        def somebody_writes(self, save: str, file: str, body: bytes) -> None:
            self.ground.fill(f"{save}/{file}", body=body)
            self.model.files[f"{save}/{file}".encode()] = body

        @rule(save=saves)
        def remove_save(self, save: str) -> None:
            path = save.encode()
            # A directory that was emptied is still one, which no key and no model can be.
            there = self.model.has_save(path)
            removal = self.store.remove_save(path, MARKERS)
            assert removal.found or not there
            while removal.more:
                removal = self.store.remove_save(path, ())
            self.model.remove_save(path, MARKERS)

        @rule(save=saves, file=files)
        def look(self, save: str, file: str) -> None:
            path = f"{save}/{file}".encode()
            assert self.store.size(path) == self.model.size(path)
            parts, expected = self.store.read(path), self.model.read(path)
            assert (parts and b"".join(parts)) == (expected and b"".join(expected))

        @invariant()
        def they_hold_the_same(self) -> None:
            for area in Area:
                assert everything(lambda after, area=area: self.store.names(area, after)) == sorted(
                    self.model.areas[area]
                )
            holding = [name for name in everything(lambda after: self.store.folders(b"run", after)) if self.holds(name)]
            assert holding == everything(lambda after: self.model.folders(b"run", after))

        def holds(self, name: bytes) -> bool:
            return self.model.has_save(b"run/" + name)

    run_state_machine_as_test(  # type: ignore[no-untyped-call]  # Hypothesis leaves it untyped
        AgainstTheModel,
        settings=settings(
            max_examples=10, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
