"""Finds the system's CA bundle. Distributions add a private CA to it; certifi does not have it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",  # RHEL 6
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # Alpine, FreeBSD
)


def system_ca_bundle(candidates: Iterable[str] = SYSTEM_BUNDLES) -> str:
    """The path of a PEM bundle: the first candidate that is a file and not empty, else certifi's."""
    for path in candidates:
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_size > 0:
            return path
    import certifi  # noqa: PLC0415  (only on a system without a bundle)

    return certifi.where()
