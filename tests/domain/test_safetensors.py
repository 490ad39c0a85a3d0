from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain import safetensors
from publish.domain.safetensors import MAX_HEADER
from tests.support.samples import sample

MODEL = sample("hf/checkpoint-5/model.safetensors")


def fault_of(content: bytes, size: int | None = None) -> str | None:
    size = len(content) if size is None else size
    header_size = safetensors.header_size(content, size)
    if isinstance(header_size, str):
        return header_size
    return safetensors.fault(content[8 : 8 + header_size], size)


def file_of(header: object, data: int = 0) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data)


def test_a_file_that_safetensors_wrote_is_whole() -> None:
    """verify.6"""
    assert fault_of(MODEL) is None


def test_a_file_that_is_cut_off_anywhere_is_broken() -> None:
    """verify.6"""
    assert all(fault_of(MODEL[:size]) for size in range(len(MODEL)))


def test_a_file_with_bytes_after_its_end_is_broken() -> None:
    """verify.6"""
    assert fault_of(MODEL + b"\n") == f"longer than its header says: {len(MODEL) + 1} bytes instead of {len(MODEL)}"


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"__metadata__": {"format": "pt", "data_offsets": "no tensor"}},
        {"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}},
    ],
)
def test_a_file_without_data_is_whole(header: object) -> None:
    assert fault_of(file_of(header)) is None


def test_the_greatest_end_counts_wherever_it_is() -> None:
    header = {"b": {"data_offsets": [4, 12]}, "a": {"data_offsets": [0, 4]}}
    assert fault_of(file_of(header, 12)) is None
    assert fault_of(file_of(header, 11)) == "cut off: the header describes 83 bytes and the file has 82"


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b" {}", "the header is not a JSON object"),
        (b"", "the header is not a JSON object"),
        (b"[]", "the header is not a JSON object"),
        (b"{", "the header is not JSON"),
        (b'{"a": "\xff"}', "the header is not JSON"),
        (b'{"a": ' + b"[" * 100_000, "the header is not JSON"),
        (b'{"a": ' + b"1" * 5000 + b"}", "the header is not JSON"),
        ({"a": 1}, "the header has a tensor without data_offsets"),
        ({"a": {}}, "the header has a tensor without data_offsets"),
        ({"a": {"data_offsets": [0]}}, "the header has a tensor without data_offsets"),
        ({"a": {"data_offsets": [0, -1]}}, "the header has a tensor without data_offsets"),
        ({"a": {"data_offsets": [0, True]}}, "the header has a tensor without data_offsets"),
        ({"a": {"data_offsets": [0, "9"]}}, "the header has a tensor without data_offsets"),
    ],
)
def test_a_header_of_another_form_is_broken(header: object, why: str) -> None:
    assert fault_of(file_of(header)) == why


def test_a_header_longer_than_the_library_takes_is_broken() -> None:
    """verify.6"""
    start = (MAX_HEADER + 1).to_bytes(8, "little")
    assert fault_of(start, 2 * MAX_HEADER) == f"a header of more than {MAX_HEADER} bytes: {MAX_HEADER + 1}"


def test_a_header_longer_than_the_file_is_broken() -> None:
    assert fault_of(b"\x05" + bytes(7) + b"{}") == "cut off: the header ends at byte 13 and the file has 10"


@given(st.binary(max_size=200))
def test_no_content_makes_the_check_fail(content: bytes) -> None:
    fault_of(content)
    fault_of(file_of(content))
