"""For any sequence of calls, a store answers as the model does."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from publish.domain.entry import Entry
from publish.domain.errors import AlreadyExists
from publish.domain.frameworks import MARKERS
from publish.domain.listing import pages
from publish.domain.ports import Namespace, Store
from tests.support.fakes import FakeStore
from tests.support.stores import FreshRoot

namespaces = st.sampled_from(Namespace)
names = st.sampled_from([Entry.of(epoch, step, b"run/1").name for epoch in range(2) for step in range(3)])
saves = st.sampled_from(["run/checkpoint-1", "run/checkpoint-10", "run", "run/checkpoint-1/inner", "other"])
files = st.sampled_from(["trainer_state.json", ".metadata", "weights", "inner/x"])


def is_made(store: Store, namespace: Namespace, name: bytes) -> bool:
    try:
        store.create(namespace, name)
    except AlreadyExists:
        return False
    return True


class AgainstTheModel(RuleBasedStateMachine):
    """Applies the same calls to a store and to the model."""

    def __init__(self, fresh_root: FreshRoot) -> None:
        super().__init__()
        self.fresh_root = fresh_root
        self.store = fresh_root.store()
        self.model = FakeStore(page_size=10_000)

    @rule(namespace=namespaces, name=names)
    def create(self, namespace: Namespace, name: bytes) -> None:
        """layout.7."""
        assert is_made(self.store, namespace, name) is is_made(self.model, namespace, name)

    @rule(namespace=namespaces, some=st.sets(names, min_size=1))
    def remove(self, namespace: Namespace, some: set[bytes]) -> None:
        """prune.1."""
        assert (
            self.store.remove_entries(namespace, sorted(some))
            == self.model.remove_entries(namespace, sorted(some))
            == {}
        )

    @rule(save=saves, file=files, body=st.sampled_from([b"", b"x"]))
    def another_program_writes(self, save: str, file: str, body: bytes) -> None:
        self.fresh_root.fill(f"{save}/{file}", body=body)
        self.model.files[f"{save}/{file}".encode()] = body

    @rule(save=saves)
    def remove_tree(self, save: str) -> None:
        """prune.3."""
        path = save.encode()
        removal = self.store.remove_tree(path, MARKERS)
        # An emptied directory still exists, unlike in the model or on S3.
        assert removal.found or not self.model.save_exists(path)
        while removal.incomplete:
            removal = self.store.remove_tree(path, ())
        self.model.remove_tree(path, MARKERS)

    @rule(save=saves, file=files)
    def look(self, save: str, file: str) -> None:
        """watch.2."""
        path = f"{save}/{file}".encode()
        assert self.store.size(path) == self.model.size(path)
        assert self.store.read(path, 10) == self.model.read(path, 10)

    @invariant()
    def they_hold_the_same(self) -> None:
        """layout.5, watch.1."""
        for namespace in Namespace:
            assert self.list_entries(self.store, namespace) == self.list_entries(self.model, namespace)
        assert self.list_directories(self.store) == self.list_directories(self.model)

    def list_entries(self, store: Store, namespace: Namespace) -> list[bytes]:
        return sorted(pages(lambda token: store.list_entries(namespace, token)))

    def list_directories(self, store: Store) -> list[bytes]:
        found = pages(lambda token: store.list_directories(b"run", token))
        return sorted(name for name in found if self.model.save_exists(b"run/" + name))


def test_a_store_answers_as_the_model_does(make_root: Callable[[], FreshRoot]) -> None:
    """layout.5, layout.7, watch.1, watch.2, prune.1, prune.3."""
    run_state_machine_as_test(
        cast("type[RuleBasedStateMachine]", lambda: AgainstTheModel(make_root())),
        settings=settings(
            max_examples=10, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
