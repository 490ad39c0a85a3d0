"""The table of frameworks: names of saves, and that every row has what the rest of the program takes from it."""

from __future__ import annotations

import re

import pytest

from publish.domain.entry import MAX_UINT64
from publish.domain.errors import ConfigError
from publish.domain.frameworks import FRAMEWORKS, MARKERS
from publish.domain.layout import Framework, Layout
from publish.domain.root import Where

LAYOUTS = [(framework.name, layout) for framework in FRAMEWORKS.values() for layout in framework.layouts]


def step_of(framework: Framework, name: str) -> int | None:
    """The step in the name of a save, by the first layout that it fits."""
    steps = (layout.step_of(name.encode()) for layout in framework.layouts)
    return next((step for step in steps if step is not None), None)


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
    assert step_of(FRAMEWORKS["hf"], name) == step


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step-100", 100),  # torchtitan
        ("step100", 100),  # OLMo
        ("iter_100", 100),
        ("iter_0000100", None),  # Megatron's: its own row
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
    assert step_of(FRAMEWORKS["dcp"], name) == step


@pytest.mark.parametrize(
    ("framework", "name", "step"),
    [
        ("megatron", "iter_0000100", 100),
        ("megatron", "iter_10000000", 10000000),
        ("megatron", "iter_100", None),
        ("megatron", "release", None),
        ("verl", "global_step_7", 7),
        ("skyrl", "global_step_7", 7),
        ("openrlhf", "global_step7", 7),
        ("openrlhf", "global_step_7", None),
        ("openrlhf", "best_global_step7", None),
        ("openrlhf", "global_step7_hf", None),
        ("lightning", "epoch=1-step=7.ckpt", 7),
        ("lightning", "epoch=1-step=7-v2.ckpt", 7),
        ("lightning", "model-epoch=1-step=7.ckpt", 7),
        ("lightning", "last.ckpt", None),
        ("lightning", "epoch=1-val_loss=0.50.ckpt", None),
        ("lightning", "epoch=1-step=7", None),
        ("olmo", "step7", 7),
        ("olmo", "step7-tmp", None),
        ("levanter", "step-7", 7),
        ("orbax", "7", 7),
        ("orbax", "ckpt_0007", 7),
        ("orbax", "7.orbax-checkpoint-tmp", None),
        ("orbax", "7.orbax-checkpoint-tmp-1700000000", None),
        ("automodel", "epoch_1_step_7", 7),
        ("automodel", "epoch_1_step_7.reserving-0123abcd", None),
        ("nemo-rl", "step_7", 7),
        ("nemo-rl", "tmp_step_7", None),
        ("nemo-rl", "old_step_7", None),
        ("llamafactory", "checkpoint-7", 7),
    ],
)
def test_a_save_is_named_as_its_framework_names_it(framework: str, name: str, step: int | None) -> None:
    """watch.2."""
    assert step_of(FRAMEWORKS[framework], name) == step


@pytest.mark.parametrize(("framework", "layout"), LAYOUTS)
def test_the_forms_that_people_read_fit_the_pattern(framework: str, layout: Layout) -> None:
    """watch.2: what help, the pages and the notes of watch show is what is recognised."""
    for form in layout.forms:
        name = re.sub("E", "3", form.replace("NAME", "model").replace("N", "42"))
        assert layout.step_of(name.encode()) == 42, (framework, form)


@pytest.mark.parametrize(("framework", "layout"), LAYOUTS)
def test_no_name_is_shorter_than_the_shortest(framework: str, layout: Layout) -> None:
    """layout.8: whether a folder of saves can hold a publishable one at all is known at the start."""
    assert layout.step_of(layout.shortest) == 0, framework


@pytest.mark.parametrize(("framework", "layout"), LAYOUTS)
def test_prune_knows_a_file_to_remove_first(framework: str, layout: Layout) -> None:
    """prune.6: without it a half-removed save is not complete; one that is a file goes in one step."""
    assert layout.is_file or set(layout.markers) & set(MARKERS), framework


def test_a_framework_that_cannot_be_told_on_s3_says_so() -> None:
    """watch.2."""
    with pytest.raises(ConfigError, match=r"on S3 .*publish them from inside the training.*: automodel$"):
        FRAMEWORKS["automodel"].layouts_on(Where.OBJECT_STORE)
    assert FRAMEWORKS["automodel"].layouts_on(Where.DIRECTORY)
