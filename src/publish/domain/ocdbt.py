"""Whether the manifest of an OCDBT database (TensorStore, Orbax, Levanter) has all its bytes.

The format (google.github.io/tensorstore, "OCDBT", manifest): the magic number, big-endian; the size of
the whole file as 8 bytes, little-endian; the body; the CRC-32C of all before it as 4 bytes, little-endian.
The names of the data files are in the body, which is compressed, and are not followed.
"""

from __future__ import annotations

MAX_BYTES = 1024 * 1024
"""A manifest is some hundred bytes; of a longer one nothing is said."""

_MAGIC = bytes.fromhex("0cdb3a2a")
_MIN_BYTES = 4 + 8 + 4


def fault(manifest: bytes) -> str | None:
    """What is wrong with a whole manifest; None: nothing."""
    if len(manifest) < _MIN_BYTES:
        return f"cut off: {len(manifest)} bytes"
    if not manifest.startswith(_MAGIC):
        return "not the manifest of an OCDBT database"
    size = int.from_bytes(manifest[4:12], "little")
    if size != len(manifest):
        return f"{len(manifest)} bytes, but its header says {size}"
    if _crc32c(manifest[:-4]) != int.from_bytes(manifest[-4:], "little"):
        return "its checksum is not that of its content"
    return None


def _crc32c(data: bytes) -> int:
    """RFC 3720 appendix B.4: the polynomial of Castagnoli, reflected."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _entry(crc: int) -> int:
    for _ in range(8):
        crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc


_TABLE = [_entry(byte) for byte in range(256)]
