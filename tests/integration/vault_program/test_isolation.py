"""Nothing outside the location changes a request to Vault, with the installed program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.ca import CertificateAuthority
from tests.support.fake_vault import FakeVault
from tests.support.fault_proxy import Asked, FaultProxy
from tests.support.openbao import OpenBao
from tests.support.program import Result
from tests.support.s3_roots import Place
from tests.support.vault_jobs import Source, resolve


class Surroundings(NamedTuple):
    """A home and an environment that would turn a client's head, and the trap that they lead to."""

    env: dict[str, str]
    trap: FaultProxy
    token: str


@pytest.fixture
def hostile(tmp_path: Path, authority: CertificateAuthority) -> Iterator[Surroundings]:
    """Every well-formed VAULT_* variable, token and password files, proxies and trust of others."""
    home = tmp_path / "home"
    home.mkdir()
    token = "hvs.canary-of-the-environment"
    (home / ".vault-token").write_text(token)
    (home / ".netrc").write_text(f"machine 127.0.0.1 login canary password {token}\ndefault login a password {token}\n")
    (home / ".netrc").chmod(0o600)
    (home / ".vault").write_text('token_helper = "/bin/false"')
    pair = authority.issue("client", home)
    ca = str(authority.write(home))
    with FakeVault() as server:
        trap = server.address
        yield Surroundings(
            {
                "HOME": str(home),
                "VAULT_ADDR": trap,
                "VAULT_AGENT_ADDR": trap,
                "VAULT_PROXY_ADDR": trap,
                "VAULT_HTTP_PROXY": trap,
                "VAULT_TOKEN": token,
                "VAULT_NAMESPACE": "canary",
                "VAULT_HEADERS": json.dumps({"X-Canary": token}),
                "VAULT_WRAP_TTL": "60",
                "VAULT_SKIP_VERIFY": "true",
                "VAULT_TLS_SERVER_NAME": "canary",
                "VAULT_CACERT": ca,
                "VAULT_CACERT_BYTES": Path(ca).read_text(),
                "VAULT_CAPATH": ca,
                "VAULT_CLIENT_CERT": str(pair.certificate),
                "VAULT_CLIENT_KEY": str(pair.key),
                "VAULT_MAX_RETRIES": "5",
                "VAULT_CLIENT_TIMEOUT": "1",
                "VAULT_RATE_LIMIT": "1:1",
                "VAULT_SRV_LOOKUP": "true",
                "VAULT_DISABLE_REDIRECTS": "true",
                **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), trap),
                **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), trap),
                "NO_PROXY": "canary",
                "NETRC": str(home / ".netrc"),
                "SSL_CERT_FILE": ca,
                "SSL_CERT_DIR": str(home),
                "REQUESTS_CA_BUNDLE": ca,
                "CURL_CA_BUNDLE": ca,
                "SSLKEYLOGFILE": str(home / "keys"),
                "PYTHONWARNINGS": "error",
                "PYTHONDEVMODE": "1",
            },
            server.wire,
            token,
        )


def recorded(asked: list[Asked], own: list[str]) -> list[tuple[object, ...]]:
    """What was asked, with what differs from login to login made the same."""

    def same(text: str) -> str:
        for secret in own:
            text = text.replace(secret, "<token>")
        return text

    return [
        (one.method, one.target, sorted((name, same(value)) for name, value in one.headers), one.body) for one in asked
    ]


def test_no_variable_and_no_file_changes_a_request(
    source: Source, vault: OpenBao, place: Place, hostile: Surroundings
) -> None:
    """env.2, vault.5, vault.6, proxy.1: only the token of its own login is sent, and the trap hears nothing."""
    with FaultProxy(vault.address) as wire:
        runs = []
        for env in ({}, hostile.env):
            wire.asked.clear()
            assert resolve(place, source.at(wire.endpoint), env=env) == Result(0, b"", b"")
            asked = list(wire.asked)
            assert [one.target for one in asked] == [
                "/v1/auth/approle/login",
                f"/v1/secret/data/{source.secret}",
                "/v1/auth/token/revoke-self",
            ]
            tokens = [one.header("X-Vault-Token") for one in asked]
            assert tokens[0] is None
            assert tokens[1]
            assert tokens[1] == tokens[2]
            assert tokens[1] != hostile.token
            runs.append(recorded(asked, [tokens[1]]))
    assert runs[0] == runs[1]
    assert hostile.trap.asked == []
    assert not Path(hostile.env["SSLKEYLOGFILE"]).exists()


def test_no_variable_makes_a_server_trusted(
    source: Source, vault: OpenBao, place: Place, hostile: Surroundings, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """env.2, vault.6: only the node's roots, or `ca=`."""
    refused = resolve(place, source.at(vault.tls_address), env=hostile.env)
    assert refused.status == 1
    assert "cannot verify" in refused.notes[0]
    ca = authority.write(tmp_path)
    assert resolve(place, source.at(vault.tls_address, f"&ca={ca}"), env=hostile.env) == Result(0, b"", b"")
    assert hostile.trap.asked == []
    assert not Path(hostile.env["SSLKEYLOGFILE"]).exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VAULT_SKIP_VERIFY", "canary"),
        ("VAULT_CACERT", "/nonexistent/canary"),
        ("VAULT_ADDR", "http://user:canary@vault.example:port"),
        ("VAULT_HEADERS", '{"X-Vault-Token": "canary"}'),
        ("VAULT_CLIENT_TIMEOUT", "canary"),
    ],
)
def test_a_malformed_variable_is_an_error_that_names_it(
    source: Source, vault: OpenBao, place: Place, name: str, value: str
) -> None:
    """vault.6: and no other source."""
    with FaultProxy(vault.address) as wire:
        name_of_it = source.at(wire.endpoint)
        refused = resolve(place, name_of_it, env={name: value})
        assert wire.asked == []
    assert refused.status == 1
    assert refused.out == b""
    (note,) = refused.notes
    assert note.startswith(f"credentials: {name_of_it}: ")
    assert name in note
    assert "canary" not in note
