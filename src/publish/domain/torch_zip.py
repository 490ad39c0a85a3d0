"""Whether a file of `torch.save` has its end.

`torch.save` writes a zip archive, whose directory is at its end. PyTorch's writer closes it with the
records of zip64, whatever its size (APPNOTE.TXT of PKWARE, 4.3.14 to 4.3.16): the zip64 end of the
directory (56 bytes), its locator (20) and the end of the directory (22, without a comment).
"""

from __future__ import annotations

import struct

MAGIC = b"PK\x03\x04"
# What a pickle of protocol 2 or later begins with. `torch.save` wrote nothing else before PyTorch 1.6.
OLD_MAGIC = b"\x80"
TAIL_SIZE = 98

# The signatures of the three records, and of what lies between them only the directory's size and offset.
_TAIL = struct.Struct("<4s 36x Q Q 4s 16x 4s 16x H")
_SIGNATURES = (b"PK\x06\x06", b"PK\x06\x07", b"PK\x05\x06")


def fault(tail: bytes, size: int) -> str | None:
    """What is wrong with an archive of `size` bytes that ends with `tail`; None: it is whole."""
    if len(tail) != TAIL_SIZE:
        return f"cut off: {size} bytes"
    end, directory_size, directory, locator, last, comment = _TAIL.unpack(tail)
    if (end, locator, last) != _SIGNATURES or comment:
        return "cut off, or followed by something: no directory at its end"
    needed = directory + directory_size + TAIL_SIZE
    if needed != size:
        return f"{size} bytes, but its directory describes {needed}"
    return None
