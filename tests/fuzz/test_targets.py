"""The targets of `make fuzz`, on the corpus of what was found and on what Hypothesis makes of it."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.run import CORPUS
from tests.fuzz.targets import TARGETS

MAX_SECONDS = 5.0
MAX_MEMORY = 100 * 2**20
FILES = sorted(path for path in CORPUS.glob("*/*") if path.is_file())


def test_each_target_has_a_corpus() -> None:
    assert sorted(os.listdir(CORPUS)) == sorted(TARGETS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_of_the_corpus_is_read_in_little_time_and_memory(path: Path) -> None:
    data = path.read_bytes()
    began = process_time()
    TARGETS[path.parent.name](data)
    assert process_time() - began < MAX_SECONDS
    tracemalloc.start()
    try:
        TARGETS[path.parent.name](data)
        assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
    finally:
        tracemalloc.stop()


def _inputs(name: str) -> st.SearchStrategy[bytes]:
    """Any bytes, and files of the corpus with a part of them replaced."""
    seeds = [path.read_bytes() for path in FILES if path.parent.name == name]
    cut = st.tuples(st.sampled_from(seeds), st.floats(0, 1), st.floats(0, 1), st.binary(max_size=40))
    return st.binary(max_size=200) | cut.map(_replaced)


def _replaced(parts: tuple[bytes, float, float, bytes]) -> bytes:
    seed, start, length, new = parts
    first = int(start * len(seed))
    return seed[:first] + new + seed[first + int(length * (len(seed) - first)) :]


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_lets_only_its_declared_error_pass(name: str) -> None:
    @given(_inputs(name))
    def check(data: bytes) -> None:
        TARGETS[name](data)

    check()
