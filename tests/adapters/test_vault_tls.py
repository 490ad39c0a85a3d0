"""vault.2, vault.5: whom the Vault source trusts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ca import CertificateAuthority, MakeTlsTerminator
from tests.support.fake_vault import FakeVault
from tests.support.vault_sources import CREDENTIALS, LOGGED_IN, PLENTY, READ, REVOKED, Make, along, invalid, to

pytestmark = pytest.mark.usefixtures("nothing_is_printed")


def test_a_private_ca_is_trusted_by_ca_or_through_the_system_bundle(
    source: Make, tls: MakeTlsTerminator, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """vault.2, s3.14."""
    ca = authority.write(tmp_path)
    with FakeVault() as server:
        front = tls(server.address)
        assert source(front.address, f"&ca={ca}").read(PLENTY) == CREDENTIALS
        assert source(front.address, trust=ca).read(PLENTY) == CREDENTIALS


def test_only_the_certificates_of_ca_are_trusted(
    source: Make, tls: MakeTlsTerminator, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """vault.2."""
    other = CertificateAuthority("Another").write(tmp_path, "other.pem")
    with FakeVault() as server:
        front = tls(server.address)
        read = source(front.address, f"&ca={other}", trust=authority.write(tmp_path)).read
        assert "cannot verify the TLS certificate of the server" in invalid(lambda: read(PLENTY))
    assert server.steps == []


@pytest.mark.parametrize(
    ("host", "expired", "words"),
    [("elsewhere.example", False, "Hostname mismatch"), ("localhost", True, "certificate has expired")],
)
def test_a_certificate_that_does_not_verify_is_an_error(
    source: Make,
    tls: MakeTlsTerminator,
    authority: CertificateAuthority,
    tmp_path: Path,
    host: str,
    words: str,
    *,
    expired: bool,
) -> None:
    """vault.4."""
    ca = authority.write(tmp_path)
    with FakeVault() as server:
        front = tls(server.address, host, expired=expired)
        said = invalid(lambda: source(front.address, f"&ca={ca}").read(PLENTY))
    assert said.startswith("cannot verify the TLS certificate of the server: ")
    assert words in said
    assert server.steps == []


def test_an_unknown_ca_is_an_error(source: Make, tls: MakeTlsTerminator) -> None:
    """vault.4."""
    with FakeVault() as server:
        front = tls(server.address)
        assert "cannot verify" in invalid(lambda: source(front.address).read(PLENTY))
    assert server.steps == []


def test_tls_with_a_plain_server_is_an_error(source: Make) -> None:
    """vault.4."""
    with FakeVault() as server:
        https = server.address.replace("http", "https")
        assert invalid(lambda: source(https).read(PLENTY)).startswith("TLS with the server failed: ")


def test_plain_http_with_a_tls_server_is_an_error(source: Make, tls: MakeTlsTerminator) -> None:
    """vault.4."""
    with FakeVault() as server:
        plain = tls(server.address).address.replace("https", "http")
        assert "lost" in invalid(lambda: source(plain).read(PLENTY))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read the file of ca=: No such file or directory"),
        (b"", "the file of ca= is not a list of PEM certificates: no certificate in it"),
        (b"canary", "the file of ca= is not a list of PEM certificates: no certificate in it"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "the file of ca= is not a list of PEM certificates: ",
        ),
        (
            b"-----BEGIN CERTIFICATE-----\n!\xff\n-----END CERTIFICATE-----\n",
            "the file of ca= is not a list of PEM certificates: ",
        ),
    ],
)
def test_an_invalid_ca_file_is_an_error_and_nothing_is_sent(
    source: Make, tls: MakeTlsTerminator, tmp_path: Path, content: bytes | None, words: str
) -> None:
    """vault.4."""
    ca = tmp_path / "ca.pem"
    if content is not None:
        ca.write_bytes(content)
    with FakeVault() as server:
        front = tls(server.address)
        assert invalid(lambda: source(front.address, f"&ca={ca}").read(PLENTY)).startswith(words)
    assert server.steps == []


def test_a_ca_file_with_a_truncated_second_certificate_is_an_error(
    source: Make, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """vault.4: the first certificate alone is a list, so a count of whole ones would not see it."""
    ca = tmp_path / "ca.pem"
    whole = authority.certificate
    begin = len("-----BEGIN CERTIFICATE-----\n")
    for end in range(begin, len(whole.rstrip()), 97):
        ca.write_bytes(whole + whole[:end])
        said = invalid(lambda: source("https://vault.example", f"&ca={ca}").read(PLENTY))
        assert said.startswith("the file of ca= is not a list of PEM certificates: ")


def test_a_directory_as_ca_is_an_error(source: Make, tmp_path: Path) -> None:
    """vault.2."""
    assert "cannot use the file of ca=: not a regular file" in invalid(
        lambda: source("https://vault.example", f"&ca={tmp_path}").read(PLENTY)
    )


def test_a_redirect_from_http_to_https_is_followed_and_never_the_reverse(
    source: Make, tls: MakeTlsTerminator, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """vault.5."""
    ca = authority.write(tmp_path)
    with FakeVault() as server:
        front = tls(server.address)
        with FakeVault(login=to(f"{front.address}/v1/auth/approle/login")) as plain:
            assert source(plain.address, trust=ca).read(PLENTY) == CREDENTIALS
        assert plain.steps == [LOGGED_IN]
        assert server.steps == [LOGGED_IN, READ, REVOKED]
        with FakeVault(login=along(server)) as secure:
            said = invalid(lambda: source(tls(secure.address).address, f"&ca={ca}").read(PLENTY))
        assert said == "login: refusing a redirect from https to http"
        assert len(server.steps) == 3
