from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.weight_index import shards

NOT_BESIDE = "weight_map names something that is not a file beside it"


def test_the_files_of_an_index_are_named_once() -> None:
    """verify.6"""
    index = {
        "metadata": {"total_size": 1},
        "weight_map": {"a": "x-1.safetensors", "b": "x-2.safetensors", "c": "x-1.safetensors"},
    }
    assert shards(json.dumps(index).encode()) == frozenset({b"x-1.safetensors", b"x-2.safetensors"})


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"metadata": {}}', b"3", b"<html>"])
def test_what_has_no_weight_map_is_not_judged(content: bytes) -> None:
    """verify.6"""
    assert shards(content) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"weight_map": {"a": "x",}}', "not JSON"),
        (b'{"weight_map": []}', "weight_map is not an object"),
        (b'{"weight_map": {"a": 1}}', NOT_BESIDE),
        (b'{"weight_map": {"a": ["x"]}}', NOT_BESIDE),
        (b'{"weight_map": {"a": ""}}', NOT_BESIDE),
        (b'{"weight_map": {"a": "."}}', NOT_BESIDE),
        (b'{"weight_map": {"a": ".."}}', NOT_BESIDE),
        (b'{"weight_map": {"a": "../x"}}', NOT_BESIDE),
        (b'{"weight_map": {"a": "/x"}}', NOT_BESIDE),
        (b'{"weight_map": {"a": "x\\u0000"}}', NOT_BESIDE),
        (b'{"weight_map": {"a": "\\ud800"}}', NOT_BESIDE),
    ],
)
def test_an_index_that_names_no_plain_files_is_broken(content: bytes, why: str) -> None:
    """verify.6"""
    assert shards(content) == why


@given(st.binary(max_size=100))
def test_no_content_makes_the_reader_fail(content: bytes) -> None:
    shards(content)
    shards(b'{"weight_map": ' + content)
