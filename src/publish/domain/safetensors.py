"""Whether a safetensors file has all the bytes that its header describes.

The format (github.com/huggingface/safetensors, "Format"): 8 bytes with the size n of the header, an
unsigned little-endian integer; n bytes of JSON, which gives each tensor's `data_offsets`, counted from
the header's end; the tensors. The header is written first, so a file that is cut off shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable

PREFIX_BYTES = 8
# The limit of the safetensors library itself (MAX_HEADER_SIZE).
MAX_HEADER = 100_000_000
# With the first request for a file comes as much as most headers need.
_FIRST_READ_BYTES = 64 * 1024


def file_fault(read: Callable[[int, int], bytes], size: int) -> str | None:
    """What is wrong with a file of `size` bytes; None: it is whole. `read(start, length)` gives a part of it."""
    start = read(0, _FIRST_READ_BYTES)
    length = header_size(start, size)
    if isinstance(length, str):
        return length
    header = start[PREFIX_BYTES:][:length]
    missing = length - len(header)
    if missing:
        header += read(len(start), missing)
    return fault(header, size)


def header_size(start: bytes, size: int) -> int | str:
    """The size of the header of a file that has `size` bytes and begins with `start`; or what is wrong."""
    if size < PREFIX_BYTES or len(start) < PREFIX_BYTES:
        return f"cut off: {size} bytes"
    header = int.from_bytes(start[:PREFIX_BYTES], "little")
    if header > MAX_HEADER:
        return f"a header of more than {MAX_HEADER} bytes: {header}"
    if PREFIX_BYTES + header > size:
        return f"cut off: the header ends at byte {PREFIX_BYTES + header} and the file has {size}"
    return header


def fault(header: bytes, size: int) -> str | None:
    """What is wrong with a file of `size` bytes that has this header; None: it is whole."""
    if not header.startswith(b"{"):
        return "the header is not a JSON object"
    try:
        tensors = json.loads(header)
    except (ValueError, RecursionError):
        return "the header is not JSON"
    end = 0
    for name, tensor in tensors.items():
        if name == "__metadata__":
            continue
        tensor_end = _end(tensor)
        if tensor_end is None:
            return "the header has a tensor without data_offsets"
        end = max(end, tensor_end)
    needed = PREFIX_BYTES + len(header) + end
    if needed > size:
        return f"cut off: the header describes {needed} bytes and the file has {size}"
    if needed < size:
        return f"longer than its header says: {size} bytes instead of {needed}"
    return None


def _end(tensor: object) -> int | None:
    match tensor:
        case {"data_offsets": [int(), int() as end]} if not isinstance(end, bool) and end >= 0:
            return end
    return None
