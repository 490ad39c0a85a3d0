"""creds.1, vault.4, vault.7: when the Vault source is unavailable, and how long that takes."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from publish.adapters.vault import client
from tests.support.fake_vault import FakeVault, drips, stops_after
from tests.support.fault_proxy import Fault
from tests.support.vault_sources import LOGGED_IN, PLENTY, READ, REVOKED, Make, invalid, unavailable
from tests.support.wire_faults import silence

pytestmark = pytest.mark.usefixtures("nothing_is_printed")


def test_a_missing_approle_directory_is_unavailable_and_nothing_is_sent(source: Make, approle: Path) -> None:
    """vault.4."""
    approle.rename(approle.with_name("away"))
    with FakeVault() as server:
        assert "directory not found" in unavailable(lambda: source(server.address).read(PLENTY))
    assert server.steps == []


def test_an_invalid_approle_directory_is_an_error_and_nothing_is_sent(source: Make, approle: Path) -> None:
    """vault.7."""
    (approle / "token").touch()
    with FakeVault() as server:
        assert invalid(lambda: source(server.address).read(PLENTY)).startswith(
            "unknown field (expected role_id, secret_id)"
        )
        approle.chmod(0o755)
        assert "group or others" in invalid(lambda: source(server.address).read(PLENTY))
    assert server.steps == []


def test_a_name_that_does_not_resolve_is_unavailable(source: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """vault.4."""

    def resolve(host: str, *_: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    said = unavailable(lambda: source("http://vault.example").read(PLENTY))
    assert said == "cannot reach the server: its name does not resolve"
    said = unavailable(lambda: source("http://vault.example", "&proxy=http://proxy.example").read(PLENTY))
    assert said == "cannot reach the proxy: its name does not resolve"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_refused_connection_is_unavailable(source: Make, scheme: str) -> None:
    """vault.4."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
        said = unavailable(lambda: source(f"{scheme}://{place}").read(PLENTY))
        assert said == "cannot reach the server: Connection refused"
        said = unavailable(lambda: source(f"{scheme}://vault.example", f"&proxy=http://{place}").read(PLENTY))
        assert said == "cannot reach the proxy: Connection refused"


@pytest.mark.parametrize("number", [errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL])
def test_a_missing_route_is_unavailable(source: Make, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """vault.4."""

    class Unroutable(socket.socket):
        def connect(self, address: object) -> None:
            raise OSError(number, "no way there")

    monkeypatch.setattr(socket, "socket", Unroutable)
    said = unavailable(lambda: source("http://127.0.0.1:8200").read(PLENTY))
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
        said = unavailable(lambda: source(f"http://127.0.0.1:{listener.getsockname()[1]}").read(PLENTY))
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
        said = unavailable(lambda: source(f"{scheme}://{place}").read(PLENTY))
        assert said == "cannot reach the server: login: no response within 0.2s"
        said = unavailable(lambda: source(f"{scheme}://vault.example", f"&proxy=http://{place}").read(PLENTY))
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
        said = unavailable(lambda: source(server.address).read(PLENTY))
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
        said = unavailable(lambda: source(server.address).read(PLENTY))
        assert said == f"cannot reach the server: {step}: no complete response within 0.5s"


@pytest.mark.parametrize("fault", [silence, drips])
def test_a_read_takes_at_most_its_budget(source: Make, fault: Fault) -> None:
    """vault.4: so that the next source has its turn. The message names the limit that the user set."""
    with FakeVault(login=fault) as server:
        said = unavailable(lambda: source(server.address).read(0.5))
        assert said.startswith("cannot reach the server: login: no ")
        assert said.endswith("s (its share of -timeout 3s)")
    with FakeVault() as server:
        said = unavailable(lambda: source(server.address).read(0))
        assert said == "cannot reach the server: login: no time left of -timeout 3s"
    assert server.steps == []
