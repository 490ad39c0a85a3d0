from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain import torch_zip
from tests.support.samples import sample

FILES = ["torch/zip.pt", "torch/script.pt", "torch/none.bin", "hf/checkpoint-5/scheduler.pt"]
LARGE = sample("hf/checkpoint-5/optimizer.pt")


def fault_of(content: bytes) -> str | None:
    return torch_zip.fault(content[-torch_zip.TAIL_SIZE :], len(content))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_torch_wrote_is_whole_and_none_of_its_beginnings_is(name: str) -> None:
    """verify.6"""
    content = sample(name)
    assert fault_of(content) is None
    assert all(fault_of(content[:size]) for size in range(len(content)))


@given(st.integers(0, len(LARGE) - 1))
def test_a_larger_file_is_whole_and_none_of_its_beginnings_is(size: int) -> None:
    """verify.6"""
    assert fault_of(LARGE) is None
    assert fault_of(LARGE[:size])


def test_bytes_after_the_end_are_broken() -> None:
    """verify.6"""
    content = sample("torch/zip.pt")
    assert fault_of(content + b"\0")
    assert fault_of(content + content) == f"{2 * len(content)} bytes, but its directory describes {len(content)}"


def test_bytes_missing_in_the_middle_are_broken() -> None:
    assert fault_of(LARGE[:1000] + LARGE[1100:])


def test_a_zip_of_another_writer_has_no_such_tail() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.pkl", bytes(200))
    assert fault_of(buffer.getvalue()) == "cut off, or followed by something: no directory at its end"


def test_a_comment_in_the_last_record_is_broken() -> None:
    content = sample("torch/zip.pt")
    assert fault_of(content[:-2] + b"\1\0")


@given(st.binary(min_size=98, max_size=98), st.integers(0, 2**64))
def test_no_tail_makes_the_check_fail(tail: bytes, size: int) -> None:
    assert torch_zip.fault(tail, size)
