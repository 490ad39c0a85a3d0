"""vault.4, vault.8: answers that Vault does not send, and secrets in what a server sends."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from publish.domain.credentials import Credentials
from tests.support.fake_vault import FIELDS, SECRET, FakeVault, answers, echoes, says, sends
from tests.support.fault_proxy import Exchange, Fault
from tests.support.vault_sources import CREDENTIALS, LOGGED_IN, PLENTY, READ, REVOKED, SECRET_ID, Make, invalid
from tests.support.wire_faults import lost_request, web_page

pytestmark = pytest.mark.usefixtures("nothing_is_printed")


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize(
    "status", [201, 204, 206, 300, 301, 302, 303, 304, 400, 401, 403, 404, 405, 412, 429, 472, 473, 500, 502, 503, 599]
)
def test_a_response_other_than_200_is_an_error_with_its_status(source: Make, step: str, status: int) -> None:
    """vault.4, vault.5: 473 is a standby, 503 sealed; neither is asked again."""
    fault = answers(status, {"errors": [f"because of\n\t{SECRET_ID} and  more"]}, headers={"Location": "/elsewhere"})
    with FakeVault(**{step: fault if status != 204 else says(204)}) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert said.startswith((f"{step}: the server responded", f"{step}: unsupported redirect"))
    assert str(status) in said
    if status >= 400:
        assert said == f"{step}: the server responded with status {status}: because of … and more"
    assert server.steps == ([LOGGED_IN] if step == "login" else [LOGGED_IN, READ, REVOKED])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not found (check the path"),
        (b'{"errors": []}', "not found (check the path"),
        (b'{"errors": [], "warnings": ["Invalid path for a versioned K/V"]}', ": Invalid path for a versioned K/V"),
        (b'{"data": {"data": null, "metadata": {"deletion_time": "2026"}}}', "whether it was deleted)"),
        (b"<html>canary-secret-id</html>", "not found (check the path"),
        (b'{"errors": "canary-secret-id"}', "not found (check the path"),
        (b'{"errors": [{"a": "canary-secret-id"}, 5]}', "not found (check the path"),
        (b'["canary-secret-id"]', "not found (check the path"),
    ],
)
def test_a_missing_or_deleted_secret_is_an_error_with_a_hint(source: Make, body: bytes, words: str) -> None:
    """vault.4."""
    with FakeVault(read=says(404, body)) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert said.startswith("read: the server responded with status 404: ")
    assert words in said


NOT_VAULTS: list[Fault] = [
    web_page,
    says(200, b""),
    says(200, b"null"),
    says(200, b"[]"),
    says(200, b'"canary"'),
    says(200, b"5"),
    says(200, b"{}"),
    says(200, b'{"auth": null, "data": null}'),
    says(200, b'{"auth": [], "data": []}'),
    says(200, b'{"auth": {}, "data": {"data": null}}'),
    says(200, b'{"auth": {"client_token": null}, "data": {"data": []}}'),
    says(200, b'{"auth": {"client_token": ""}, "data": {"data": "canary"}}'),
    says(200, b'{"auth": {"client_token": 5}, "data": "canary"}'),
    says(200, b'{"auth": {"client_token": "canary'),
    says(200, b"\xff\xfe\xff"),
    says(200, b"[" * 100_000),
    says(200, b'{"auth": ' + b"9" * 5000 + b"}"),
]


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize("fault", NOT_VAULTS)
def test_a_body_that_vault_does_not_send_is_an_error(source: Make, step: str, fault: Fault) -> None:
    """vault.4."""
    with FakeVault(**{step: fault}) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert said.startswith(f"{step}: unexpected response (is this a Vault server?)")


@pytest.mark.parametrize("token", ["canary\nX-Evil: 1", "canary ", "canary\x00", "canaryé", "canary\u2028"])
def test_a_malformed_token_is_an_error_and_is_not_quoted(source: Make, token: str) -> None:
    """vault.4, cli.9: the library's own words about it would hold it."""
    with FakeVault(login=answers(200, {"auth": {"client_token": token}})) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert said == "login: unexpected response (is this a Vault server?): malformed token"
    assert server.steps == [LOGGED_IN]


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize(
    "fault",
    [
        lost_request,
        sends(b"", reset=True),
        sends(b"HTTP/1.1 200 OK\r\nConte"),
        sends(b"HTTP/1.1 200 OK\r\nConte", reset=True),
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", reset=True),
        sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}"),
        sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ncanary\r\n"),
        sends(b"canary canary canary\r\n\r\n"),
        sends(b"HTTP/1.1 canary\r\n\r\n"),
        sends(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"),
        sends(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000),
    ],
)
def test_a_connection_lost_during_the_response_is_an_error(source: Make, step: str, fault: Fault) -> None:
    """vault.4: it could be reached."""
    with FakeVault(**{step: fault}) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert "lost before the response was complete" in said or "unexpected response" in said


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "br", "canary-secret-id"])
def test_a_compressed_body_is_an_error(source: Make, step: str, encoding: str) -> None:
    """vault.9: it was not asked for, and a few bytes of it may stand for gigabytes."""
    packed = says(200, gzip.compress(json.dumps(SECRET).encode()), headers={"Content-Encoding": encoding})
    with FakeVault(**{step: packed}) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert said.startswith(f"{step}: the response is compressed: ")


def test_an_endless_response_is_refused(source: Make) -> None:
    def floods(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                exchange.send(b"canary" * 10_000)
        except OSError:
            exchange.close()

    with FakeVault(read=floods) as server:
        assert invalid(lambda: source(server.address).read(PLENTY)) == "read: response larger than 1024 KiB"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({**FIELDS, "region": 5}, "not a string: region"),
        ({**FIELDS, "region": None}, "not a string: region"),
        ({**FIELDS, "region": ["canary"]}, "not a string: region"),
        ({**FIELDS, "session_token": {"canary": "canary"}}, "not a string: session_token"),
        ({**FIELDS, "region": ""}, "empty field: region"),
        ({**FIELDS, "region": "eu-west-1\n"}, "field contains whitespace: region"),
        ({**FIELDS, "secret_access_key": "canary\n"}, "field contains whitespace: secret_access_key"),
        ({**FIELDS, "secret_access_key": "canary\ud800"}, "unprintable character: secret_access_key"),
        ({**FIELDS, "endpoint": "https://u:canary@s3.example"}, "invalid endpoint (expected http(s)://HOST[:PORT])"),
        ({**FIELDS, "password": "canary"}, "session_token): password"),
        ({**FIELDS, "password": 5}, "session_token): password"),
        ({**FIELDS, "canary-secret-key": "x"}, "session_token): …"),
        ({**FIELDS, "a\nb": "c"}, "session_token): a b"),
        ({"access_key_id": "AKID"}, "missing field: secret_access_key"),
        ({}, "missing field: access_key_id"),
    ],
)
def test_fields_are_checked_and_values_are_not_trimmed(source: Make, data: dict[str, object], fault: str) -> None:
    """creds.2, vault.7: no newline is dropped."""
    with FakeVault(read=answers(200, {"data": {"data": data, "metadata": {}}})) as server:
        assert fault in invalid(lambda: source(server.address).read(PLENTY))
    assert server.steps == [LOGGED_IN, READ, REVOKED]


def test_all_five_fields_are_taken(source: Make) -> None:
    """creds.2."""
    data = {**FIELDS, "session_token": "t", "endpoint": "https://s3.example:9000", "region": "eu-west-1"}
    with FakeVault(read=answers(200, {"data": {"data": data}})) as server:
        credentials = source(server.address).read(PLENTY)
    assert credentials == Credentials("AKIDEXAMPLE", "canary-secret-key", "t", "https://s3.example:9000", "eu-west-1")


def test_kv_version_1_has_the_fields_one_level_up(source: Make) -> None:
    """vault.2."""
    with FakeVault(read=answers(200, {"data": FIELDS})) as server:
        assert source(server.address, "&kv=1").read(PLENTY) == CREDENTIALS
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert said == "read: unexpected response (is this a Vault server?) for KV version 2"


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize("status", [400, 403, 404, 500, 503])
def test_a_server_that_echoes_every_request_is_quoted_without_secrets(source: Make, step: str, status: int) -> None:
    """vault.8, cli.9; `failure` searches for each of them."""
    fault = echoes(status, f"Upper: {SECRET_ID.upper()}", f"twice {SECRET_ID}{SECRET_ID}", "on\nlines\x1b[31m")
    with FakeVault(**{step: fault}) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert "…" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("secret_id", ['canary"quoted\\', "canary/%41+&=", "canary<&>'"])
def test_secrets_are_redacted_in_json_and_in_urls(source: Make, approle: Path, secret_id: str) -> None:
    """vault.8."""
    (approle / "secret_id").write_text(secret_id)
    with FakeVault(login=echoes(400, json.dumps(secret_id), secret_id)) as server:
        assert "…" in invalid(lambda: source(server.address).read(PLENTY))


@pytest.mark.parametrize("said", ["canary%2Fpart+x%3D%3D", r"canary\/part+x==", r"canary\u002fpart%2Bx=\u003d"])
def test_a_secret_with_mixed_escapes_is_redacted_whole(source: Make, approle: Path, said: str) -> None:
    """vault.8, cli.9."""
    (approle / "secret_id").write_text("canary/part+x==")
    with FakeVault(login=answers(400, {"errors": [f"no {said} here"]})) as server:
        assert invalid(lambda: source(server.address).read(PLENTY)).endswith("status 400: no … here")


def test_a_servers_message_is_bounded(source: Make) -> None:
    """vault.8: one line, of bounded length."""
    with FakeVault(login=answers(400, {"errors": ["x" * 10_000]})) as server:
        assert len(invalid(lambda: source(server.address).read(PLENTY))) < 600


def test_a_secret_across_the_bound_is_redacted_whole(source: Make) -> None:
    """vault.8."""
    with FakeVault(login=answers(400, {"errors": ["x" * 495 + SECRET_ID]})) as server:
        assert invalid(lambda: source(server.address).read(PLENTY)).endswith("…")
