"""Save folders' names, and when a save is complete."""

from __future__ import annotations

import pytest

from publish.domain.entry import MAX_UINT64
from publish.domain.errors import FormatError
from publish.domain.frameworks import FRAMEWORKS, Save
from tests.support.fakes import FakeStore

HF, DCP = FRAMEWORKS["hf"], FRAMEWORKS["dcp"]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("checkpoint-5", 5),
        ("checkpoint-007", 7),
        (f"checkpoint-{MAX_UINT64}", MAX_UINT64),
        (f"checkpoint-{MAX_UINT64 + 1}", None),
        ("checkpoint-", None),
        ("checkpoint-5a", None),
        ("checkpoint-5\n", None),
        ("checkpoint-\u0665", None),
        ("tmp-checkpoint-5", None),
        ("checkpoint-5.tmp", None),
        ("checkpoint--5", None),
        ("Checkpoint-5", None),
        ("run-1", None),
    ],
)
def test_an_hf_save_is_named_checkpoint_and_its_step(name: str, step: int | None) -> None:
    """watch.2."""
    assert HF.step_of(name.encode()) == step


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step-100", 100),  # torchtitan
        ("step100", 100),  # OLMo
        ("iter_0000100", 100),  # Megatron
        ("iteration=3", 3),
        ("global_step_100", 100),  # veRL
        ("ep1-ba100", 100),  # Composer
        ("epoch=1-step=100.ckpt", 100),  # Lightning
        ("epoch=1-step=100", 100),
        ("step=100.ckpt", 100),
        ("step=100", 100),
        ("checkpoint_3", 3),  # accelerate
        ("ckpt-3", 3),
        ("100", 100),
        (f"{MAX_UINT64}", MAX_UINT64),
        (f"{MAX_UINT64 + 1}", None),
        ("tmp-checkpoint-5", None),
        ("optimizer_0", None),
        ("2026-11-29", None),
        ("run-3", None),
        ("step-1e3", None),
        ("step--3", None),
        ("step-", None),
        ("step-3.ckpt", None),
        ("epoch=1", None),
        ("epoch=1-step-3", None),
        ("ep1-ba", None),
        ("step-\u0663", None),
        ("step-3\n", None),
        ("STEP-3", None),
        ("", None),
        ("1" * 250, None),
    ],
)
def test_a_dcp_save_is_named_by_the_rule(name: str, step: int | None) -> None:
    """watch.3."""
    assert DCP.step_of(name.encode()) == step


def store_with(**files: bytes) -> FakeStore:
    store = FakeStore()
    store.files = {f"run/s/{name.replace('__', '.')}".encode(): content for name, content in files.items()}
    return store


SAVE = Save(5, b"run/s")
STATE = b'{"global_step": 5}'


@pytest.mark.parametrize(
    ("store", "complete"),
    [
        (store_with(trainer_state__json=STATE), True),
        (store_with(trainer_state__json=STATE[:-1]), False),
        (store_with(trainer_state__json=b""), False),
        (store_with(trainer_state__json=b'{"global_step": 6'), False),
        (store_with(weights=b"x"), False),
        (FakeStore(), False),
    ],
)
def test_an_hf_save_is_complete_when_its_state_is_whole(store: FakeStore, complete: bool) -> None:  # noqa: FBT001
    """watch.2, watch.4."""
    assert HF.is_complete(store, SAVE) is complete


def test_a_save_that_pre_emption_began_is_complete_when_the_sentinel_is_gone() -> None:
    """watch.2."""
    store = store_with(trainer_state__json=STATE)
    store.files[b"run/s/checkpoint-is-incomplete.txt"] = b""
    assert not HF.is_complete(store, SAVE)
    del store.files[b"run/s/checkpoint-is-incomplete.txt"]
    assert HF.is_complete(store, SAVE)


def test_a_pre_emption_save_that_begins_between_two_looks_is_not_taken_for_complete() -> None:
    """watch.2: the state is read before the sentinel is looked for."""

    class Racing(FakeStore):
        def exists(self, path: bytes) -> bool:
            found = super().exists(path)
            self.files[b"run/s/checkpoint-is-incomplete.txt"] = b""
            self.files[b"run/s/trainer_state.json"] = STATE
            return found

    store = Racing()
    assert not HF.is_complete(store, SAVE)


@pytest.mark.parametrize(
    ("state", "fault"),
    [(b'{"global_step": 6}', "not the step of the folder: 6"), (b"[", None), (b"[]", "not an object")],
)
def test_a_fault_names_the_file(state: bytes, fault: str | None) -> None:
    """watch.4."""
    store = store_with(trainer_state__json=state)
    if fault is None:
        assert not HF.is_complete(store, SAVE)
        return
    with pytest.raises(FormatError, match=f"^trainer_state.json: .*{fault}"):
        HF.is_complete(store, SAVE)


def test_a_state_that_is_no_regular_file_is_a_fault() -> None:
    """watch.4."""
    store = FakeStore()
    store.files[b"run/s/trainer_state.json/x"] = b""
    with pytest.raises(FormatError, match=r"^trainer_state.json: not a regular file"):
        HF.is_complete(store, SAVE)


@pytest.mark.parametrize(
    ("store", "complete"),
    [
        (store_with(__metadata=b"x"), True),
        (store_with(__metadata=b""), False),
        (store_with(__metadata__tmp=b"x"), False),
        (store_with(__0__metadata=b"x"), False),
        (FakeStore(), False),
    ],
)
def test_a_dcp_save_is_complete_when_its_metadata_has_content(store: FakeStore, complete: bool) -> None:  # noqa: FBT001
    """watch.2: a power loss leaves it there empty."""
    assert DCP.is_complete(store, SAVE) is complete


def test_metadata_of_a_folder_below_does_not_count() -> None:
    """watch.2."""
    store = FakeStore()
    store.files[b"run/s/model/.metadata"] = b"x"
    assert not DCP.is_complete(store, SAVE)
