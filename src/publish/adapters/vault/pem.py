"""PEM certificates of a file. A file that is no file (a FIFO) is refused and does not hang the reader."""

from __future__ import annotations

import os
import re
import ssl
import stat

_MAX_BYTES = 16 * 1024 * 1024
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def certificates(text: bytes) -> list[bytes]:
    """Every certificate in a PEM text, DER-encoded. Raises ValueError if there is none, or one is broken."""
    found = []
    for block in _CERTIFICATE.findall(text):
        try:
            encoded = ssl.PEM_cert_to_DER_cert(block.decode("ascii"))
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=encoded)
        except (ValueError, ssl.SSLError) as fault:
            raise ValueError("a certificate in it is broken") from fault
        found.append(encoded)
    if not found:
        raise ValueError("there is no PEM certificate in it")
    return found


def read_regular(path: bytes) -> bytes:
    """A regular file's content. Raises OSError, or ValueError for what is no such file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"it is over {_MAX_BYTES // 1024**2} MiB")
    return text
