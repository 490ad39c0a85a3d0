"""s3.14: the node's own TLS roots."""

from __future__ import annotations

from pathlib import Path

import certifi

from publish.adapters.ca_bundle import SYSTEM_BUNDLES, system_ca_bundle


def test_the_first_bundle_that_is_not_empty_is_used(tmp_path: Path) -> None:
    """s3.14."""
    names = ["missing", "empty", "directory", "first", "second"]
    (tmp_path / "empty").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "first").write_text("PEM")
    (tmp_path / "second").write_text("PEM")
    assert system_ca_bundle(str(tmp_path / name) for name in names) == str(tmp_path / "first")


def test_a_link_to_a_bundle_is_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "bundle").write_text("PEM")
    (tmp_path / "link").symlink_to("bundle")
    assert system_ca_bundle([str(tmp_path / "link")]) == str(tmp_path / "link")


def test_certifi_is_used_on_a_system_without_a_bundle(tmp_path: Path) -> None:
    """s3.14."""
    assert system_ca_bundle([str(tmp_path / "missing")]) == certifi.where()


def test_the_bundles_of_large_distributions_are_candidates() -> None:
    assert SYSTEM_BUNDLES[0] == "/etc/ssl/certs/ca-certificates.crt"
    assert all(path.startswith("/etc/") for path in SYSTEM_BUNDLES)
