from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.rank_sets import missing

# Searched for, they take ten times as long.
MAX_SECONDS = 5.0


def faults_of(*files: str) -> list[tuple[str, str]]:
    return [(fault.file.decode(), fault.why) for fault in missing([file.encode() for file in files])]


def verl(world: int, ranks: range, kind: str = "model") -> list[str]:
    return [f"actor/{kind}_world_size_{world}_rank_{rank}.pt" for rank in ranks]


def zero(kind: str, dp: int, mp: int = 1) -> list[str]:
    return [f"global_step5/{kind.format(d, m)}" for d in range(dp) for m in range(mp)]


MODEL = "mp_rank_{1:02d}_model_states.pt"
MODEL_3 = "zero_pp_rank_{}_mp_rank_{:02d}_model_states.pt"
OPTIMIZER = "bf16_zero_pp_rank_{}_mp_rank_{:02d}_optim_states.pt"


@pytest.mark.parametrize(
    "files",
    [
        [],
        ["config.json", "model.safetensors", "rng_state.pth"],
        verl(4, range(4)) + verl(4, range(4), "optim"),
        [*verl(4, range(4)), "critic/model_world_size_2_rank_0.pt", "critic/model_world_size_2_rank_1.pt"],
        ["model_world_size_2_rank_0.pt", "model_world_size_2_rank_1.pt"],
        [f"random/tp-{t}-of-2_dp-{d}-of-3_pp-0-of-1.pt" for t in range(2) for d in range(3)],
        [f"rng_state_{rank}.pth" for rank in range(12)],
        ["random_states_0.pkl", "random_states_1.pkl", "rng_state_0.pth"],
        zero(MODEL, 1, 2) + zero(OPTIMIZER, 4, 2),
        zero(MODEL_3, 4) + zero(OPTIMIZER, 4),
        ["layer_00-model_00-model_states.pt", "layer_3_expert_7_mp_rank_00_model_states.pt"],
        ["expp_rank_0_mp_rank_00_optim_states.pt", "expp_rank_1_mp_rank_00_optim_states.pt"],
    ],
)
def test_a_complete_set_is_whole(files: list[str]) -> None:
    """verify.6"""
    assert faults_of(*files) == []


@pytest.mark.parametrize(
    ("files", "file", "why"),
    [
        (verl(4, range(3)), "actor/model_world_size_4_rank_0.pt", "3 of 4 ranks are there; rank 3 is not"),
        (verl(4, range(1, 4)), "actor/model_world_size_4_rank_1.pt", "3 of 4 ranks are there; rank 0 is not"),
        (
            verl(2, range(2)) + verl(4, range(4)),
            "actor/model_world_size_4_rank_0.pt",
            "of another number of ranks than the files beside it",
        ),
        (verl(2, range(3)), "actor/model_world_size_2_rank_2.pt", "a rank above the number of ranks in its name"),
        (
            ["random/tp-0-of-2_dp-0-of-1_pp-0-of-1.pt"],
            "random/tp-0-of-2_dp-0-of-1_pp-0-of-1.pt",
            "1 of 2 ranks are there; rank (1, 0, 0) is not",
        ),
        (["rng_state_0.pth", "rng_state_2.pth"], "rng_state_0.pth", "2 of 3 ranks are there; rank 1 is not"),
        (["a/random_states_1.pkl"], "a/random_states_1.pkl", "1 of 2 ranks are there; rank 0 is not"),
        (
            zero(OPTIMIZER, 4, 2)[:-1],
            "global_step5/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "7 of 8 ranks are there; rank (3, 1) is not",
        ),
        (
            zero(MODEL_3, 4) + zero(OPTIMIZER, 3),
            "global_step5/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "3 ranks, and 4 model states beside it",
        ),
    ],
)
def test_a_set_with_a_gap_is_broken(files: list[str], file: str, why: str) -> None:
    """verify.6"""
    assert faults_of(*files) == [(file, why)]


def test_many_sets_cost_no_more_than_their_number() -> None:
    """verify.5: a set is looked up, not searched for among all others."""
    files = [f"{number}/{MODEL_3.format(0, 0)}" for number in range(20_000)]
    began = process_time()
    assert faults_of(*files) == []
    assert process_time() - began < MAX_SECONDS


def test_a_number_of_ranks_that_no_job_has_costs_nothing() -> None:
    """verify.5"""
    huge = "9" * 60
    grid = f"tp-0-of-{huge}_dp-0-of-{huge}_pp-0-of-{huge}.pt"
    assert len(faults_of(f"m_world_size_{huge}_rank_0.pt", grid, f"rng_state_{huge}.pth")) == 3


@given(st.integers(1, 6), st.integers(1, 4), st.data())
def test_any_file_that_is_missing_before_the_last_shows(dp: int, mp: int, data: st.DataObject) -> None:
    """verify.6"""
    files = zero(OPTIMIZER, dp, mp)
    assert faults_of(*files) == []
    absent = data.draw(st.sampled_from(files))
    rest = [file for file in files if file != absent]
    # The last rank of all is a set of another job, if it is alone in its direction.
    if absent != files[-1]:
        assert faults_of(*rest)


@given(
    st.lists(
        st.from_regex(
            r"[a-z_]{0,8}(?:world_size|mp_rank|rng_state)_[0-9]{1,3}(?:_rank_[0-9]{1,2})?\.pth?", fullmatch=True
        )
    )
)
def test_no_names_make_the_check_fail(files: list[str]) -> None:
    faults_of(*files)
