"""The TLS roots that a node trusts: its distribution's bundle, which a private CA is added to (S8)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",  # RHEL, older
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",
)


def system_ca_bundle(candidates: Iterable[str] = SYSTEM_BUNDLES) -> str:
    """The path of a PEM bundle: the first candidate that holds anything, else certifi's own."""
    for path in candidates:
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_size > 0:
            return path
    import certifi  # noqa: PLC0415  (only where the node has no bundle)

    return certifi.where()
