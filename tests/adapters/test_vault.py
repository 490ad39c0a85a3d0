"""vault.4, vault.5, vault.7, vault.8: the Vault source's requests and how it reads every answer of a fake server."""

from __future__ import annotations

import errno
import gzip
import json
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from publish.adapters.vault import VaultSource, client
from publish.adapters.vault.responses import Response
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, SourceUnavailable
from publish.domain.vault_url import parse_vault_url
from tests.support.ca import CertificateAuthority, MakeFront
from tests.support.fake_vault import (
    FIELDS,
    LOGIN,
    SECRET,
    TOKEN,
    FakeVault,
    answers,
    drips,
    echoes,
    says,
    sends,
    stops_after,
)
from tests.support.fault_proxy import Exchange, Fault, lost_request, silence, web_page
from tests.support.private_files import write_private_directory

SECRET_ID = "canary-secret-id"
CREDENTIALS = Credentials("AKIDEXAMPLE", "canary-secret-key", None, None, "us-east-1")
LOGGED_IN = "POST /v1/auth/approle/login"
READ = "GET /v1/secret/data/team/s3"
REVOKED = "POST /v1/auth/token/revoke-self"
NODES = "/etc/ssl/certs/ca-certificates.crt"

# Seconds, for a source that is expected to answer or to be refused at once.
PLENTY = 60.0


@pytest.fixture(autouse=True)
def nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """cli.9: nor by a thread of its own that fails."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def approle(tmp_path: Path) -> Path:
    return write_private_directory(tmp_path / "approle", {"role_id": "canary-role-id\n", "secret_id": f"{SECRET_ID}\n"})


@pytest.fixture
def source(approle: Path) -> Callable[..., VaultSource]:
    def make(
        server: str, more: str = "", *, trust: str | Path = NODES, environment: Mapping[str, str] | None = None
    ) -> VaultSource:
        location = f"{server}/team/s3?auth=approle&approle={approle}{more}"
        return VaultSource(
            f"vault:{location}",
            parse_vault_url(location),
            ca_bundle=str(trust),
            environment=environment or {},
            timeout=3.0,
        )

    return make


Make = Callable[..., VaultSource]


def failure(read: Callable[[], object]) -> CredentialsError:
    """What was raised, searched for secrets, and with all that hangs on it."""
    with pytest.raises(CredentialsError) as raised:
        read()
    error: BaseException | None = raised.value
    assert "canary" not in "".join(traceback.format_exception(raised.value))
    while error is not None:
        assert "canary" not in repr((error.args, vars(error)))
        error = error.__cause__ or error.__context__
    assert "\n" not in str(raised.value)
    return raised.value


def absent(read: Callable[[], object]) -> str:
    fault = failure(read)
    assert isinstance(fault, SourceUnavailable), fault
    return str(fault)


def wrong(read: Callable[[], object]) -> str:
    fault = failure(read)
    assert not isinstance(fault, SourceUnavailable), fault
    return str(fault)


# What is asked


def test_it_logs_in_reads_and_revokes_the_token(source: Make) -> None:
    """vault.5."""
    with FakeVault() as server:
        assert source(server.address).read(PLENTY) == CREDENTIALS
    assert server.steps == [LOGGED_IN, READ, REVOKED]
    assert json.loads(server.asked[0].body) == {"role_id": "canary-role-id", "secret_id": SECRET_ID}


def test_each_request_has_a_connection_of_its_own(source: Make) -> None:
    """vault.4: nothing is retried, so a reused connection that a proxy has closed would make the source fail."""
    with FakeVault() as server:
        source(server.address).read(PLENTY)
        assert server.wire.connections == len(server.asked) == 3


def test_only_requests_after_the_login_carry_the_token_and_every_header_is_known(source: Make) -> None:
    """vault.5, env.2: every header is known."""
    with FakeVault() as server:
        source(server.address, "&namespace=team/a").read(PLENTY)
    host = server.address.removeprefix("http://")
    common = {
        "Host": host,
        "User-Agent": "publish",
        "Accept-Encoding": "identity",
        "Accept": "*/*",
        "Connection": "keep-alive",
        "X-Vault-Request": "true",
        "X-Vault-Namespace": "team/a",
    }
    login, read, revoke = (dict(asked.headers) for asked in server.asked)
    assert login == common | {"Content-Length": login["Content-Length"], "Content-Type": "application/json"}
    assert read == common | {"X-Vault-Token": TOKEN}
    assert revoke == common | {"X-Vault-Token": TOKEN, "Content-Length": "0"}


@pytest.mark.parametrize(
    ("path", "more", "asked"),
    [
        ("team/s3", "", "/v1/secret/data/team/s3"),
        ("team/s3", "&kv=1", "/v1/secret/team/s3"),
        ("team/s3", "&mount=kv/deep", "/v1/kv/deep/data/team/s3"),
        ("a%2Cb", "", "/v1/secret/data/a%2Cb"),
        ("a%2Fb", "", "/v1/secret/data/a/b"),
        ("a%252Fb", "", "/v1/secret/data/a%252Fb"),
        ("a%25b", "", "/v1/secret/data/a%25b"),
        ("a%3Fb%23c", "", "/v1/secret/data/a%3Fb%23c"),
        ("a+b~c;d", "", "/v1/secret/data/a%2Bb~c%3Bd"),
        ("%7Bmount_point%7D", "", "/v1/secret/data/%7Bmount_point%7D"),
        ("caf%C3%A9", "", "/v1/secret/data/caf%C3%A9"),
        ("...", "", "/v1/secret/data/..."),
    ],
)
def test_the_path_is_encoded_once_on_the_wire(approle: Path, path: str, more: str, asked: str) -> None:
    """vault.3."""
    document = {"data": FIELDS} if "kv=1" in more else SECRET
    with FakeVault(read=answers(200, document)) as server:
        location = f"{server.address}/{path}?auth=approle&approle={approle}{more}"
        VaultSource(
            "vault:",
            parse_vault_url(location),
            ca_bundle=NODES,
            environment={},
            timeout=60,
        ).read(PLENTY)
    assert server.steps[1] == f"GET {asked}"


def test_a_kubernetes_login_sends_the_role_and_the_token_without_its_newline(tmp_path: Path) -> None:
    """vault.2, vault.7."""
    (tmp_path / "token").write_text("canary.jwt\n")
    with FakeVault() as server:
        location = f"{server.address}/team/s3?auth=kubernetes&role=a%26b&authmount=k8s/east&token={tmp_path}/token"
        VaultSource(
            "vault:",
            parse_vault_url(location),
            ca_bundle=NODES,
            environment={},
            timeout=60,
        ).read(PLENTY)
    assert server.steps[0] == "POST /v1/auth/k8s/east/login"
    assert json.loads(server.asked[0].body) == {"role": "a&b", "jwt": "canary.jwt"}


def test_the_environment_of_the_process_changes_nothing(
    source: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """env.2: the program empties it, and this does not lean on that."""
    (tmp_path / ".vault-token").write_text("canary-of-the-home")
    (tmp_path / ".netrc").write_text("default login canary password canary")
    (tmp_path / ".netrc").chmod(0o600)
    with FakeVault() as trap, FakeVault() as server:
        source(server.address).read(PLENTY)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "VAULT_ADDR", "VAULT_AGENT_ADDR", "VAULT_PROXY_ADDR"):
            monkeypatch.setenv(name, trap.address)
        for name in ("VAULT_TOKEN", "VAULT_NAMESPACE"):
            monkeypatch.setenv(name, "canary-of-the-environment")
        source(server.address).read(PLENTY)
    assert trap.steps == []
    assert server.asked[:3] == server.asked[3:]


# Absent


def test_a_missing_approle_directory_is_unavailable_and_nothing_is_sent(source: Make, approle: Path) -> None:
    """vault.4."""
    approle.rename(approle.with_name("away"))
    with FakeVault() as server:
        assert "directory not found" in absent(lambda: source(server.address).read(PLENTY))
    assert server.steps == []


def test_an_invalid_approle_directory_is_an_error_and_nothing_is_sent(source: Make, approle: Path) -> None:
    """vault.7."""
    (approle / "token").touch()
    with FakeVault() as server:
        assert wrong(lambda: source(server.address).read(PLENTY)).startswith(
            "unknown field (expected role_id, secret_id)"
        )
        approle.chmod(0o755)
        assert "group or others" in wrong(lambda: source(server.address).read(PLENTY))
    assert server.steps == []


def test_a_name_that_does_not_resolve_is_unavailable(source: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """vault.4."""

    def resolve(host: str, *_: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    said = absent(lambda: source("http://vault.example").read(PLENTY))
    assert said == "cannot reach the server: its name does not resolve"
    said = absent(lambda: source("http://vault.example", "&proxy=http://proxy.example").read(PLENTY))
    assert said == "cannot reach the proxy: its name does not resolve"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_refused_connection_is_unavailable(source: Make, scheme: str) -> None:
    """vault.4."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
        said = absent(lambda: source(f"{scheme}://{place}").read(PLENTY))
        assert said == "cannot reach the server: Connection refused"
        said = absent(lambda: source(f"{scheme}://vault.example", f"&proxy=http://{place}").read(PLENTY))
        assert said == "cannot reach the proxy: Connection refused"


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL])
def test_a_missing_route_is_unavailable(source: Make, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """vault.4."""

    class Unroutable(socket.socket):
        def connect(self, address: object) -> None:
            raise OSError(number, "no way there")

    monkeypatch.setattr(socket, "socket", Unroutable)
    said = absent(lambda: source("http://127.0.0.1:8200").read(PLENTY))
    assert said == "cannot reach the server: no way there"


def test_a_connect_timeout_is_unavailable(source: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """vault.4: each has its own limit, whatever time is left."""
    monkeypatch.setattr(client, "CONNECT_TIMEOUT", 0.2)
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # The queue of a listener that takes none is full soon, and then connecting hangs.
        for _ in range(4):
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        said = absent(lambda: source(f"http://127.0.0.1:{listener.getsockname()[1]}").read(PLENTY))
    assert said == "cannot reach the server: login: no connection within 0.2s"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_accepts_and_stays_silent_is_unavailable(
    source: Make, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """vault.4: by TLS it is the handshake that hangs, and connecting's limit that ends it."""
    monkeypatch.setattr(client, "READ_TIMEOUT", 0.2)
    monkeypatch.setattr(client, "CONNECT_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        said = absent(lambda: source(f"{scheme}://{place}").read(PLENTY))
        assert said == "cannot reach the server: login: no response within 0.2s"
        said = absent(lambda: source(f"{scheme}://vault.example", f"&proxy=http://{place}").read(PLENTY))
        assert said.endswith(": login: no response within 0.2s")


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize(
    "fault",
    [
        silence,
        stops_after(b"HTTP/1.1 200 OK\r\nContent-Le"),
        stops_after(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"),
        stops_after(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
        stops_after(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}"),
    ],
)
def test_a_server_that_stops_responding_is_unavailable(
    source: Make, monkeypatch: pytest.MonkeyPatch, step: str, fault: Fault
) -> None:
    """vault.4."""
    monkeypatch.setattr(client, "READ_TIMEOUT", 0.2)
    with FakeVault(**{step: fault}) as server:
        said = absent(lambda: source(server.address).read(PLENTY))
        assert said == f"cannot reach the server: {step}: no response within 0.2s"
    # A read that was not answered is followed by an attempt to end the token.
    assert server.steps == ([LOGGED_IN] if step == "login" else [LOGGED_IN, READ, REVOKED])


@pytest.mark.parametrize("step", ["login", "read"])
def test_a_server_that_sends_byte_by_byte_is_unavailable_after_the_limit(
    source: Make, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """vault.4: no read ever times out, so it is the wall clock that ends it."""
    monkeypatch.setattr(client._Adapter, "max_seconds", 0.5)
    with FakeVault(**{step: drips}) as server:
        said = absent(lambda: source(server.address).read(PLENTY))
        assert said == f"cannot reach the server: {step}: no complete response within 0.5s"


@pytest.mark.parametrize("fault", [silence, drips])
def test_a_read_takes_at_most_its_budget(source: Make, fault: Fault) -> None:
    """vault.4: so that the next source has its turn. The message names the limit that the user set."""
    with FakeVault(login=fault) as server:
        said = absent(lambda: source(server.address).read(0.5))
        assert said.startswith("cannot reach the server: login: no ")
        assert said.endswith("s (its share of -timeout 3s)")
    with FakeVault() as server:
        said = absent(lambda: source(server.address).read(0))
        assert said == "cannot reach the server: login: no time left of -timeout 3s"
    assert server.steps == []


# Wrong


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize(
    "status", [201, 204, 206, 300, 301, 302, 303, 304, 400, 401, 403, 404, 405, 412, 429, 472, 473, 500, 502, 503, 599]
)
def test_a_response_other_than_200_is_an_error_with_its_status(source: Make, step: str, status: int) -> None:
    """vault.4, vault.5: 473 is a standby, 503 sealed; neither is asked again."""
    fault = answers(status, {"errors": [f"because of\n\t{SECRET_ID} and  more"]}, headers={"Location": "/elsewhere"})
    with FakeVault(**{step: fault if status != 204 else says(204)}) as server:
        said = wrong(lambda: source(server.address).read(PLENTY))
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
        said = wrong(lambda: source(server.address).read(PLENTY))
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
        said = wrong(lambda: source(server.address).read(PLENTY))
    assert said.startswith(f"{step}: unexpected response (is this a Vault server?)")


@pytest.mark.parametrize("token", ["canary\nX-Evil: 1", "canary ", "canary\x00", "canaryé", "canary\u2028"])
def test_a_malformed_token_is_an_error_and_is_not_quoted(source: Make, token: str) -> None:
    """vault.4, cli.9: the library's own words about it would hold it."""
    with FakeVault(login=answers(200, {"auth": {"client_token": token}})) as server:
        said = wrong(lambda: source(server.address).read(PLENTY))
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
        said = wrong(lambda: source(server.address).read(PLENTY))
    assert "lost before the response was complete" in said or "unexpected response" in said


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "br", "canary-secret-id"])
def test_a_compressed_body_is_an_error(source: Make, step: str, encoding: str) -> None:
    """vault.9: it was not asked for, and a few bytes of it may stand for gigabytes."""
    packed = says(200, gzip.compress(json.dumps(SECRET).encode()), headers={"Content-Encoding": encoding})
    with FakeVault(**{step: packed}) as server:
        said = wrong(lambda: source(server.address).read(PLENTY))
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
        assert wrong(lambda: source(server.address).read(PLENTY)) == "read: response larger than 1024 KiB"


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
        assert fault in wrong(lambda: source(server.address).read(PLENTY))
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
        said = wrong(lambda: source(server.address).read(PLENTY))
    assert said == "read: unexpected response (is this a Vault server?) for KV version 2"


# What a server echoes


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize("status", [400, 403, 404, 500, 503])
def test_a_server_that_echoes_every_request_is_quoted_without_secrets(source: Make, step: str, status: int) -> None:
    """vault.8, cli.9; `failure` searches for each of them."""
    fault = echoes(status, f"Upper: {SECRET_ID.upper()}", f"twice {SECRET_ID}{SECRET_ID}", "on\nlines\x1b[31m")
    with FakeVault(**{step: fault}) as server:
        said = wrong(lambda: source(server.address).read(PLENTY))
    assert "…" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("secret_id", ['canary"quoted\\', "canary/%41+&=", "canary<&>'"])
def test_secrets_are_redacted_in_json_and_in_urls(source: Make, approle: Path, secret_id: str) -> None:
    """vault.8."""
    (approle / "secret_id").write_text(secret_id)
    with FakeVault(login=echoes(400, json.dumps(secret_id), secret_id)) as server:
        assert "…" in wrong(lambda: source(server.address).read(PLENTY))


@pytest.mark.parametrize("said", ["canary%2Fpart+x%3D%3D", r"canary\/part+x==", r"canary\u002fpart%2Bx=\u003d"])
def test_a_secret_with_mixed_escapes_is_redacted_whole(source: Make, approle: Path, said: str) -> None:
    """vault.8, cli.9."""
    (approle / "secret_id").write_text("canary/part+x==")
    with FakeVault(login=answers(400, {"errors": [f"no {said} here"]})) as server:
        assert wrong(lambda: source(server.address).read(PLENTY)).endswith("status 400: no … here")


def test_a_servers_message_is_bounded(source: Make) -> None:
    """vault.8: one line, of bounded length."""
    with FakeVault(login=answers(400, {"errors": ["x" * 10_000]})) as server:
        assert len(wrong(lambda: source(server.address).read(PLENTY))) < 600


def test_a_secret_across_the_bound_is_redacted_whole(source: Make) -> None:
    """vault.8."""
    with FakeVault(login=answers(400, {"errors": ["x" * 495 + SECRET_ID]})) as server:
        assert wrong(lambda: source(server.address).read(PLENTY)).endswith("…")


# Redirects


def to(target: str, status: int = 307) -> Fault:
    return answers(status, {"errors": []}, headers={"Location": target})


def along(server: FakeVault, status: int = 307) -> Fault:
    """A redirect to the same path on another server."""

    def fault(exchange: Exchange) -> None:
        to(server.address + exchange.asked.target, status)(exchange)

    return fault


@pytest.mark.parametrize("status", [307, 308])
def test_a_login_follows_one_redirect_and_later_requests_go_to_that_server(source: Make, status: int) -> None:
    """vault.5: a standby that names the active node. The token is for who gave it."""
    with FakeVault() as active, FakeVault(login=along(active, status)) as standby:
        assert source(standby.address).read(PLENTY) == CREDENTIALS
    assert standby.steps == [LOGGED_IN]
    assert active.steps == [LOGGED_IN, READ, REVOKED]
    assert active.asked[0].body == standby.asked[0].body
    assert standby.asked[0].header("X-Vault-Token") is None


@pytest.mark.parametrize("step", ["login", "read"])
@pytest.mark.parametrize("target", ["/v1/moved?a=b", "v1/moved"])
def test_a_redirect_on_the_same_server_is_followed(source: Make, step: str, target: str) -> None:
    """vault.5."""
    then = answers(200, LOGIN if step == "login" else SECRET)
    with FakeVault() as server:
        server.wire.heal()
        method = "POST" if step == "login" else "GET"
        server.wire.spoil(method, to(target, 308), part="login" if step == "login" else "data")
        server.wire.spoil(method, then, part="moved")
        server.wire.spoil("POST", answers(200, LOGIN), part="/login")
        server.wire.spoil("GET", answers(200, SECRET))
        server.wire.spoil("POST", says(204), part="/revoke-self")
        assert source(server.address).read(PLENTY) == CREDENTIALS
    assert any("moved" in asked for asked in server.steps)


def test_the_token_is_not_sent_to_another_server_by_a_redirect(source: Make) -> None:
    """vault.5."""
    with FakeVault() as other, FakeVault(read=along(other)) as server:
        said = wrong(lambda: source(server.address).read(PLENTY))
    assert said == "read: refusing to send the token to another server (redirect)"
    assert other.steps == []
    assert server.steps == [LOGGED_IN, READ, REVOKED]


@pytest.mark.parametrize("step", ["login", "read"])
def test_a_second_redirect_is_an_error(source: Make, step: str) -> None:
    """vault.5."""
    with FakeVault(**{step: to("/v1/auth/approle/login" if step == "login" else "/v1/again")}) as server:
        said = wrong(lambda: source(server.address).read(PLENTY))
    assert said == f"{step}: unsupported redirect (only one 307 or 308 is followed): 307"
    assert len(server.steps) == (2 if step == "login" else 4)


@pytest.mark.parametrize(
    "target",
    [
        "ftp://vault.example/",
        "http://canary:canary@vault.example/",
        "http://no..such/",
        "http://vault.example:99999/",
    ],
)
def test_a_redirect_to_an_invalid_url_is_an_error(source: Make, target: str) -> None:
    """vault.5, cli.9."""
    with FakeVault(login=to(target)) as server:
        assert wrong(lambda: source(server.address).read(PLENTY)) == "login: redirect to an invalid URL"
    assert server.steps == [LOGGED_IN]


def test_a_redirect_that_no_library_can_parse_is_an_error(source: Make) -> None:
    """vault.5."""
    with FakeVault(login=to("http://[::1/")) as server:
        assert wrong(lambda: source(server.address).read(PLENTY)) == "the request failed: ValueError"


@pytest.mark.parametrize("fault", [answers(307, {}), to("")])
def test_a_redirect_without_a_location_is_an_error(source: Make, fault: Fault) -> None:
    """vault.5."""
    with FakeVault(login=fault) as server:
        said = wrong(lambda: source(server.address).read(PLENTY))
    assert said == "login: unsupported redirect (only one 307 or 308 is followed): 307"


# TLS


def test_a_private_ca_is_trusted_by_ca_or_through_the_system_bundle(
    source: Make, tls: MakeFront, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """vault.2, s3.14."""
    ca = authority.write(tmp_path)
    with FakeVault() as server:
        front = tls(server.address)
        assert source(front.address, f"&ca={ca}").read(PLENTY) == CREDENTIALS
        assert source(front.address, trust=ca).read(PLENTY) == CREDENTIALS


def test_only_the_certificates_of_ca_are_trusted(
    source: Make, tls: MakeFront, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """vault.2."""
    other = CertificateAuthority("Another").write(tmp_path, "other.pem")
    with FakeVault() as server:
        front = tls(server.address)
        read = source(front.address, f"&ca={other}", trust=authority.write(tmp_path)).read
        assert "cannot verify the TLS certificate of the server" in wrong(lambda: read(PLENTY))
    assert server.steps == []


@pytest.mark.parametrize(
    ("host", "expired", "words"),
    [("elsewhere.example", False, "Hostname mismatch"), ("localhost", True, "certificate has expired")],
)
def test_a_certificate_that_does_not_verify_is_an_error(
    source: Make,
    tls: MakeFront,
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
        said = wrong(lambda: source(front.address, f"&ca={ca}").read(PLENTY))
    assert said.startswith("cannot verify the TLS certificate of the server: ")
    assert words in said
    assert server.steps == []


def test_an_unknown_ca_is_an_error(source: Make, tls: MakeFront) -> None:
    """vault.4."""
    with FakeVault() as server:
        front = tls(server.address)
        assert "cannot verify" in wrong(lambda: source(front.address).read(PLENTY))
    assert server.steps == []


def test_tls_with_a_plain_server_is_an_error(source: Make) -> None:
    """vault.4."""
    with FakeVault() as server:
        https = server.address.replace("http", "https")
        assert wrong(lambda: source(https).read(PLENTY)).startswith("TLS with the server failed: ")


def test_plain_http_with_a_tls_server_is_an_error(source: Make, tls: MakeFront) -> None:
    """vault.4."""
    with FakeVault() as server:
        plain = tls(server.address).address.replace("https", "http")
        assert "lost" in wrong(lambda: source(plain).read(PLENTY))


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
    source: Make, tls: MakeFront, tmp_path: Path, content: bytes | None, words: str
) -> None:
    """vault.4."""
    ca = tmp_path / "ca.pem"
    if content is not None:
        ca.write_bytes(content)
    with FakeVault() as server:
        front = tls(server.address)
        assert wrong(lambda: source(front.address, f"&ca={ca}").read(PLENTY)).startswith(words)
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
        said = wrong(lambda: source("https://vault.example", f"&ca={ca}").read(PLENTY))
        assert said.startswith("the file of ca= is not a list of PEM certificates: ")


def test_a_directory_as_ca_is_an_error(source: Make, tmp_path: Path) -> None:
    """vault.2."""
    assert "cannot use the file of ca=: not a regular file" in wrong(
        lambda: source("https://vault.example", f"&ca={tmp_path}").read(PLENTY)
    )


def test_a_redirect_from_http_to_https_is_followed_and_never_the_reverse(
    source: Make, tls: MakeFront, authority: CertificateAuthority, tmp_path: Path
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
            said = wrong(lambda: source(tls(secure.address).address, f"&ca={ca}").read(PLENTY))
        assert said == "login: refusing a redirect from https to http"
        assert len(server.steps) == 3


# The end of the token


@pytest.mark.parametrize("fault", [says(403), says(500), says(200, b"{}"), web_page, lost_request, to("/v1/again")])
def test_a_failed_revocation_is_ignored(source: Make, fault: Fault) -> None:
    """vault.5."""
    with FakeVault(revoke=fault) as server:
        assert source(server.address).read(PLENTY) == CREDENTIALS


@pytest.mark.parametrize("fault", [silence, drips])
def test_the_revocation_takes_at_most_five_seconds(source: Make, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    """vault.5: 5 s of however much is left."""
    assert client.REVOKE_TIMEOUT == 5
    monkeypatch.setattr(client, "REVOKE_TIMEOUT", 0.2)
    with FakeVault(revoke=fault) as server:
        assert source(server.address).read(PLENTY) == CREDENTIALS
    assert server.steps == [LOGGED_IN, READ, REVOKED]


def test_a_redirect_does_not_extend_the_time_of_the_revocation(source: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """vault.5: 5 s in all."""
    limits: list[float] = []
    send = client._Adapter._send

    def note(self: client._Adapter, *given: Any) -> Response:  # noqa: ANN401  (passed on)
        limits.append(given[-1])
        if len(limits) == 3:
            monkeypatch.setattr(client, "monotonic", lambda: monotonic() + 3)
        return send(self, *given)

    monkeypatch.setattr(client._Adapter, "_send", note)
    with FakeVault() as server:
        server.wire.heal()
        server.wire.spoil("POST", answers(200, LOGIN), part="/login")
        server.wire.spoil("GET", answers(200, SECRET))
        server.wire.spoil("POST", to("/v1/moved"), part="/revoke-self")
        server.wire.spoil("POST", says(204), part="/moved")
        assert source(server.address).read(PLENTY) == CREDENTIALS
    assert server.steps == [LOGGED_IN, READ, REVOKED, "POST /v1/moved"]
    assert limits[2] <= 5
    assert limits[3] <= 2


def test_a_request_has_ten_seconds_to_connect_and_ten_for_the_response() -> None:
    """vault.4."""
    assert (client.CONNECT_TIMEOUT, client.READ_TIMEOUT, client._Adapter.max_seconds) == (10, 10, 20)


# vault.6, and what is imported


def test_a_malformed_variable_is_an_error_before_anything_else_is_checked(source: Make, approle: Path) -> None:
    """vault.6: even a source that would be absent."""
    approle.rename(approle.with_name("away"))
    with FakeVault() as server:
        read = source(server.address, environment={"VAULT_SKIP_VERIFY": "canary"}).read
        said = wrong(lambda: read(PLENTY))
    assert said == "VAULT_SKIP_VERIFY must be true or false, or unset"
    assert server.steps == []


def test_hvac_is_imported_only_when_a_request_is_sent() -> None:
    """A source that is absent, or passed over, costs no start-up time."""
    program = """
import sys
from publish.adapters.secret_files import read_private_directory, read_secret_file
from publish.adapters.vault import VaultSource
from publish.domain.errors import SourceUnavailable
from publish.domain.vault_url import parse_vault_url
source = VaultSource("vault:", parse_vault_url("http://v/p?auth=approle&approle=/nonexistent"),
    ca_bundle="/nonexistent", environment={}, timeout=60)
try:
    source.read(1)
except SourceUnavailable:
    print(*sorted({"hvac", "requests", "urllib3"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_no_thread_is_left_after_a_read(source: Make) -> None:
    before = threading.active_count()
    with FakeVault() as server:
        source(server.address).read(PLENTY)
    assert threading.active_count() == before
