"""vault.6: a malformed VAULT_* variable fails the source and is named; a well-formed or empty one does nothing."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from publish.adapters.vault.environment import check_environment
from publish.domain.errors import CredentialsError, SourceUnavailable
from tests.support.ca import CertificateAuthority, Pair

CANARY = "canary-7f3a"


def refusal(environment: Mapping[str, str]) -> str:
    with pytest.raises(CredentialsError) as raised:
        check_environment(environment)
    assert not isinstance(raised.value, SourceUnavailable)
    assert CANARY not in "".join(traceback.format_exception(raised.value))
    return str(raised.value)


@pytest.fixture
def pair(authority: CertificateAuthority, tmp_path: Path) -> Pair:
    return authority.issue("client", tmp_path)


WELL_FORMED = {
    "VAULT_MAX_RETRIES": ["0", "5", "4294967295", "007"],
    "VAULT_RATE_LIMIT": ["10", "1.5", ".5", "5.", "1e3", "-1", "inf", "NaN", "10:20", "1.5:-3", "1e3:+2"],
    "VAULT_CLIENT_TIMEOUT": ["60", "0", "-5", "+5", "30s", "1m30s", "1.5h", ".5s", "5.s", "1µs", "1μs", "-1ms", "2d"],
    "VAULT_SKIP_VERIFY": ["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"],
    "VAULT_SRV_LOOKUP": ["true", "0"],
    "VAULT_DISABLE_REDIRECTS": ["true", "0"],
    "VAULT_HEADERS": ["{}", '{"a": "b"}', '{"x-vault-token": "lower case is another to Go"}', ' {"a":""} '],
    "VAULT_ADDR": [
        "http://127.0.0.1:8200",
        "https://vault.example",
        "https://vault.example:",
        "https://vault.example:99999",
        f"https://user:{CANARY}@vault.example/path?q#f",
        "http://[::1]:8200/",
        "unix:///run/vault.sock",
        "localhost:8200",
        "vault.example",
        "/run/vault",
        "./a:b",
        "//vault.example",
        "///a",
        "http://",
        "http://v%C3%A4ult",
        "mailto:x%zz",
    ],
    "VAULT_PROXY_ADDR": ["http://proxy.example:3128"],
    "VAULT_HTTP_PROXY": ["http://proxy.example:3128"],
    "VAULT_AGENT_ADDR": ["http://127.0.0.1:8100"],
}
MALFORMED = {
    "VAULT_MAX_RETRIES": ["-1", "+1", "4294967296", "1.5", "many", " 1", "1 ", "1_000", "٣", "9" * 5000, "0x10"],
    "VAULT_RATE_LIMIT": ["fast", "10:", ":10", "10:fast", "10:1.5", "1:2:3", "10 ", "1,5", "e3", "."],
    "VAULT_CLIENT_TIMEOUT": ["soon", "1.5", "10 s", "10x", "s", "1d12h", ".s", "1m 30s", "d", "1.5d", "٣s"],
    "VAULT_SKIP_VERIFY": ["yes", "no", "on", "tRUE", " true", "2", "true\n"],
    "VAULT_SRV_LOOKUP": ["yes"],
    "VAULT_DISABLE_REDIRECTS": ["yes"],
    "VAULT_HEADERS": [
        CANARY,
        f'["{CANARY}"]',
        f'"{CANARY}"',
        "null",
        '{"a": 1}',
        '{"a": null}',
        '{"a": ["b"]}',
        '{"a": "b"',
        f'{{"X-Vault-Token": "{CANARY}"}}',
        '{"a": "b", "X-Vault-": "c"}',
        "[" * 100_000,
    ],
    "VAULT_ADDR": [
        f"http://user:{CANARY}@vault.example:port",
        "127.0.0.1:8200",
        "http://vault example",
        "http://vault.example:80x",
        "http://[::1",
        "http://[::1]x",
        "http://a:b:c",
        "://vault.example",
        ":8200",
        "http://vault.example/%zz",
        "http://vault.example/#%zz",
        "http://%zz",
        "http://%41",
        "http://us er@vault.example",
        "http://us%zzer@vault.example",
        "http://vault.example/\x7f",
        "http://vault.example\n",
        "a%zz",
        ":b/c",
    ],
    "VAULT_PROXY_ADDR": [f"http://{CANARY} x"],
    "VAULT_HTTP_PROXY": [f"http://{CANARY} x"],
    "VAULT_AGENT_ADDR": [f"http://{CANARY} x"],
}


def rows(table: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, values in table.items() for value in values]


@pytest.mark.parametrize(("name", "value"), rows(WELL_FORMED))
def test_a_well_formed_value_is_accepted(name: str, value: str) -> None:
    """vault.6."""
    check_environment({name: value})


@pytest.mark.parametrize(("name", "value"), rows(MALFORMED))
def test_a_malformed_value_refuses_the_source_by_name_and_is_never_quoted(name: str, value: str) -> None:
    """vault.6, cli.9."""
    assert name in refusal({name: value})


@pytest.mark.parametrize("name", [*MALFORMED, "VAULT_CLIENT_CERT", "VAULT_CLIENT_KEY", "VAULT_CACERT", "VAULT_CAPATH"])
def test_an_empty_value_counts_as_unset(name: str) -> None:
    """vault.6."""
    check_environment({name: ""})


def test_variables_that_the_client_does_not_parse_are_ignored() -> None:
    """vault.6: a namespace, a token, a wrapping's time and another program's variables may be anything."""
    check_environment(
        {"VAULT_NAMESPACE": "//", "VAULT_TOKEN": "\n", "VAULT_WRAP_TTL": "x", "VAULT_FORMAT": "%", "A": ":"}
    )


def test_of_two_names_for_the_same_setting_the_first_counts() -> None:
    """vault.6: `VAULT_PROXY_ADDR, else VAULT_HTTP_PROXY; VAULT_AGENT_ADDR, else VAULT_ADDR`."""
    check_environment({"VAULT_PROXY_ADDR": "http://p", "VAULT_HTTP_PROXY": ":bad"})
    check_environment({"VAULT_AGENT_ADDR": "http://a", "VAULT_ADDR": ":bad"})
    assert "VAULT_HTTP_PROXY" in refusal({"VAULT_PROXY_ADDR": "", "VAULT_HTTP_PROXY": ":bad"})
    assert "VAULT_ADDR" in refusal({"VAULT_AGENT_ADDR": "", "VAULT_ADDR": ":bad"})


# The client's certificate


def test_a_certificate_with_its_key_is_accepted(pair: Pair) -> None:
    """vault.6."""
    check_environment({"VAULT_CLIENT_CERT": str(pair.certificate), "VAULT_CLIENT_KEY": str(pair.key)})


@pytest.mark.parametrize("name", ["VAULT_CLIENT_CERT", "VAULT_CLIENT_KEY"])
def test_a_certificate_without_a_key_is_refused_and_vice_versa(pair: Pair, name: str) -> None:
    """vault.6."""
    assert refusal({name: str(pair.certificate)}).endswith(f"only one is: {name}")


def test_files_that_are_not_a_key_pair_are_refused(pair: Pair, authority: CertificateAuthority, tmp_path: Path) -> None:
    """vault.6."""
    other = authority.issue("other", tmp_path)
    for certificate, key in [(pair.certificate, other.key), (pair.key, pair.certificate), (pair.key, pair.key)]:
        said = refusal({"VAULT_CLIENT_CERT": str(certificate), "VAULT_CLIENT_KEY": str(key)})
        assert "VAULT_CLIENT_CERT and VAULT_CLIENT_KEY do not form a valid key pair" in said


def test_an_encrypted_key_is_refused_without_a_prompt(pair: Pair) -> None:
    """vault.6: no terminal is waited for."""
    key = load_pem_private_key(pair.key.read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"phrase"))
    pair.key.write_bytes(locked)
    assert "do not form a valid key pair" in refusal(
        {"VAULT_CLIENT_CERT": str(pair.certificate), "VAULT_CLIENT_KEY": str(pair.key)}
    )


@pytest.mark.parametrize("name", ["VAULT_CLIENT_CERT", "VAULT_CLIENT_KEY"])
def test_a_client_file_that_cannot_be_read_is_refused(pair: Pair, tmp_path: Path, name: str) -> None:
    """vault.6: a FIFO does not hang it."""
    os.mkfifo(tmp_path / "fifo")
    for bad in (tmp_path / "missing", tmp_path, tmp_path / "fifo"):
        both = {"VAULT_CLIENT_CERT": str(pair.certificate), "VAULT_CLIENT_KEY": str(pair.key), name: str(bad)}
        assert refusal(both).startswith(f"cannot read the file that {name} names: ")


# The roots


def test_pem_certificates_are_accepted(authority: CertificateAuthority, tmp_path: Path) -> None:
    """vault.6."""
    pem = authority.certificate.decode()
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots" / "deeper").mkdir()
    file = authority.write(tmp_path / "roots" / "deeper")
    check_environment({"VAULT_CACERT": str(file)})
    check_environment({"VAULT_CACERT_BYTES": pem})
    check_environment({"VAULT_CAPATH": str(tmp_path / "roots")})
    check_environment({"VAULT_CAPATH": str(file)})
    file.write_text(f"# words about it, with an umlaut: ä\n{pem}\n{pem}")
    check_environment({"VAULT_CACERT": str(file)})
    strange = file.rename(os.fsdecode(os.fsencode(file) + b"\xff"))
    check_environment({"VAULT_CACERT": os.fsencode(strange).decode("utf-8", "surrogateescape")})


def test_a_broken_certificate_beside_a_valid_one_is_accepted(authority: CertificateAuthority) -> None:
    """vault.6: Go passes over it."""
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    check_environment({"VAULT_CACERT_BYTES": broken + authority.certificate.decode() + broken})
    assert "VAULT_CACERT_BYTES" in refusal({"VAULT_CACERT_BYTES": broken})
    assert "VAULT_CACERT_BYTES" in refusal({"VAULT_CACERT_BYTES": CANARY})


@pytest.mark.parametrize("name", ["VAULT_CACERT", "VAULT_CAPATH"])
def test_a_file_without_a_certificate_is_refused(tmp_path: Path, name: str, pair: Pair) -> None:
    """vault.6."""
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    for bad in (tmp_path / "missing", tmp_path / "empty", pair.key, tmp_path / "fifo"):
        assert refusal({name: str(bad)}).startswith(f"{name} has no readable PEM certificate: ")


def test_a_directory_as_vault_cacert_is_refused(tmp_path: Path) -> None:
    """vault.6."""
    assert "VAULT_CACERT has no readable PEM certificate" in refusal({"VAULT_CACERT": str(tmp_path)})


def test_every_file_in_vault_capath_must_have_a_certificate(authority: CertificateAuthority, tmp_path: Path) -> None:
    """vault.6."""
    roots = tmp_path / "roots"
    roots.mkdir()
    check_environment({"VAULT_CAPATH": str(roots)})
    authority.write(roots)
    (roots / "deeper").mkdir()
    (roots / "deeper" / "README").touch()
    assert "VAULT_CAPATH has no readable PEM certificate" in refusal({"VAULT_CAPATH": str(roots)})
    (roots / "deeper" / "README").unlink()
    (roots / "link").symlink_to("deeper")
    assert "VAULT_CAPATH has no readable PEM certificate" in refusal({"VAULT_CAPATH": str(roots)})


def test_of_three_names_for_the_ca_the_first_counts(authority: CertificateAuthority, tmp_path: Path) -> None:
    """vault.6: `VAULT_CACERT, else VAULT_CACERT_BYTES, else VAULT_CAPATH`."""
    good = str(authority.write(tmp_path))
    check_environment({"VAULT_CACERT": good, "VAULT_CACERT_BYTES": "bad", "VAULT_CAPATH": "/missing"})
    check_environment({"VAULT_CACERT_BYTES": authority.certificate.decode(), "VAULT_CAPATH": "/missing"})
    assert "VAULT_CACERT_BYTES has no readable PEM certificate" in refusal(
        {"VAULT_CACERT_BYTES": "bad", "VAULT_CAPATH": good}
    )
