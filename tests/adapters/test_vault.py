"""vault.4, vault.5, vault.6: the requests of the Vault source, from the login to the end of the token."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from publish.adapters.vault import VaultSource, client
from publish.adapters.vault.responses import Response
from publish.domain.vault_url import parse_vault_url
from tests.support.fake_vault import FIELDS, LOGIN, SECRET, TOKEN, FakeVault, answers, drips, says
from tests.support.fault_proxy import Fault
from tests.support.vault_sources import (
    CREDENTIALS,
    LOGGED_IN,
    NODES,
    PLENTY,
    READ,
    REVOKED,
    SECRET_ID,
    Make,
    invalid,
    to,
)
from tests.support.wire_faults import lost_request, silence, web_page

pytestmark = pytest.mark.usefixtures("nothing_is_printed")


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


def test_a_malformed_variable_is_an_error_before_anything_else_is_checked(source: Make, approle: Path) -> None:
    """vault.6: even a source that would be absent."""
    approle.rename(approle.with_name("away"))
    with FakeVault() as server:
        read = source(server.address, environment={"VAULT_SKIP_VERIFY": "canary"}).read
        said = invalid(lambda: read(PLENTY))
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
