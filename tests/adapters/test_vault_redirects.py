"""vault.5: which redirects the Vault source follows."""

from __future__ import annotations

import pytest

from tests.support.fake_vault import LOGIN, SECRET, FakeVault, answers, says
from tests.support.fault_proxy import Fault
from tests.support.vault_sources import CREDENTIALS, LOGGED_IN, PLENTY, READ, REVOKED, Make, along, invalid, to

pytestmark = pytest.mark.usefixtures("nothing_is_printed")


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
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert said == "read: refusing to send the token to another server (redirect)"
    assert other.steps == []
    assert server.steps == [LOGGED_IN, READ, REVOKED]


@pytest.mark.parametrize("step", ["login", "read"])
def test_a_second_redirect_is_an_error(source: Make, step: str) -> None:
    """vault.5."""
    with FakeVault(**{step: to("/v1/auth/approle/login" if step == "login" else "/v1/again")}) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
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
        assert invalid(lambda: source(server.address).read(PLENTY)) == "login: redirect to an invalid URL"
    assert server.steps == [LOGGED_IN]


def test_a_redirect_that_no_library_can_parse_is_an_error(source: Make) -> None:
    """vault.5."""
    with FakeVault(login=to("http://[::1/")) as server:
        assert invalid(lambda: source(server.address).read(PLENTY)) == "the request failed: ValueError"


@pytest.mark.parametrize("fault", [answers(307, {}), to("")])
def test_a_redirect_without_a_location_is_an_error(source: Make, fault: Fault) -> None:
    """vault.5."""
    with FakeVault(login=fault) as server:
        said = invalid(lambda: source(server.address).read(PLENTY))
    assert said == "login: unsupported redirect (only one 307 or 308 is followed): 307"
