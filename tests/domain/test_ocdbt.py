from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain import ocdbt

MAGIC = bytes.fromhex("0cdb3a2a")
# RFC 3720 appendix B.4: the checksum of 32 bytes of zeros, as they are sent.
ZEROS, CHECKSUM_OF_ZEROS = bytes(32), bytes.fromhex("aa36918a")


def manifest_of(body: bytes) -> bytes:
    """A manifest that another implementation of the checksum made."""
    start = MAGIC + (len(body) + 16).to_bytes(8, "little") + body
    return start + _crc32c(start).to_bytes(4, "little")


def _crc32c(data: bytes) -> int:
    """Bit by bit, as RFC 3720 defines it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 * (crc & 1))
    return crc ^ 0xFFFFFFFF


def test_the_checksum_of_this_test_is_that_of_the_rfc() -> None:
    assert _crc32c(ZEROS).to_bytes(4, "little") == CHECKSUM_OF_ZEROS


@given(st.binary(max_size=300))
def test_a_manifest_is_whole_and_none_of_its_beginnings_is(body: bytes) -> None:
    """verify.6"""
    manifest = manifest_of(body)
    assert ocdbt.fault(manifest) is None
    assert all(ocdbt.fault(manifest[:size]) for size in range(len(manifest)))
    assert ocdbt.fault(manifest + b"\0")


@given(st.binary(max_size=50), st.data())
def test_a_manifest_with_one_bit_flipped_is_broken(body: bytes, data: st.DataObject) -> None:
    """verify.6"""
    manifest = bytearray(manifest_of(body))
    bit = data.draw(st.integers(0, len(manifest) * 8 - 1))
    manifest[bit // 8] ^= 1 << bit % 8
    assert ocdbt.fault(bytes(manifest))


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (b"", "cut off: 0 bytes"),
        (bytes(40), "not the manifest of an OCDBT database"),
        (manifest_of(b"body")[:-1], "19 bytes, but its header says 20"),
        (manifest_of(b"body")[:-4] + bytes(4), "its checksum is not that of its content"),
    ],
)
def test_the_fault_is_named(manifest: bytes, why: str) -> None:
    assert ocdbt.fault(manifest) == why
