"""proxy.1 to proxy.3 with a real server: what a proxy carries, and whose certificate is trusted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.ca import CertificateAuthority, MakeTlsTerminator
from tests.support.openbao import OpenBao
from tests.support.proxies import TinyProxy
from tests.support.real_vault import CREDENTIALS, Login, Secret, invalid_at, read, unavailable_at
from tests.support.servers import free_ports

pytestmark = pytest.mark.servers


def carried_by(proxy: TinyProxy) -> list[str]:
    """What it was asked for: `METHOD target`, in order."""
    return re.findall(r"Request \(file descriptor [0-9]+\): ([A-Z]+ \S+) HTTP", proxy.asked())


def test_a_proxy_carries_every_request_to_a_plain_server(
    vault: OpenBao, secret: Secret, login: Login, tinyproxy: TinyProxy
) -> None:
    """proxy.1, proxy.3: loopback is not an exception."""
    assert read(f"{vault.address}/{secret.path}?{login(secret.policy)}&proxy={tinyproxy.url}") == CREDENTIALS
    carried = [line.partition("/v1/")[0] for line in carried_by(tinyproxy)]
    assert carried == [f"POST {vault.address}", f"GET {vault.address}", f"POST {vault.address}"]


def test_a_proxy_carries_tls_to_the_server(
    vault: OpenBao, authority: CertificateAuthority, secret: Secret, login: Login, tinyproxy: TinyProxy, tmp_path: Path
) -> None:
    """proxy.2, proxy.3."""
    ca = authority.write(tmp_path)
    location = f"{vault.tls_address}/{secret.path}?{login(secret.policy)}&proxy={tinyproxy.url}"
    assert read(f"{location}&ca={ca}") == CREDENTIALS
    assert set(carried_by(tinyproxy)) == {f"CONNECT {vault.tls_address.removeprefix('https://')}"}
    assert invalid_at(location).startswith("cannot verify the TLS certificate of the server")


def test_a_tls_proxy_is_verified_with_the_system_bundle_and_never_with_ca(
    vault: OpenBao,
    authority: CertificateAuthority,
    secret: Secret,
    approle: Login,
    tinyproxy: TinyProxy,
    tls: MakeTlsTerminator,
    tmp_path: Path,
) -> None:
    """proxy.2: two authorities, each good for one of the two and not for the other."""
    nodes = CertificateAuthority("The node's own")
    roots = nodes.write(tmp_path, "roots.pem")
    ca = authority.write(tmp_path)
    proxy = tls(tinyproxy.url, signer=nodes).address
    login = approle(secret.policy)
    through_tls = f"{vault.tls_address}/{secret.path}?{login}&ca={ca}&proxy="
    assert read(f"{through_tls}{proxy}", roots) == CREDENTIALS
    assert read(f"{vault.address}/{secret.path}?{login}&proxy={proxy}", roots) == CREDENTIALS
    # A proxy that only `ca=` would vouch for, and a server that only the node's roots would.
    assert invalid_at(f"{through_tls}{tls(tinyproxy.url, signer=authority).address}", roots).startswith(
        "cannot verify the TLS certificate of the proxy"
    )
    server = tls(vault.address, signer=nodes).address
    assert invalid_at(f"{server}/{secret.path}?{login}&ca={ca}&proxy={proxy}", roots).startswith(
        "cannot verify the TLS certificate of the server"
    )


@pytest.mark.tinyproxy
def test_a_proxy_that_refuses_to_connect_is_an_error(
    vault: OpenBao, authority: CertificateAuthority, secret: Secret, approle: Login, tmp_path: Path
) -> None:
    """vault.4."""
    proxy = TinyProxy("ConnectPort 1")
    try:
        location = f"{vault.tls_address}/{secret.path}?{approle(secret.policy)}&ca={authority.write(tmp_path)}"
        said = invalid_at(f"{location}&proxy={proxy.url}")
        assert said == "the proxy refused to connect to the server with status 403"
    finally:
        proxy.stop()


def test_a_stopped_proxy_is_unavailable_and_not_bypassed(vault: OpenBao, secret: Secret, approle: Login) -> None:
    """vault.4, proxy.3."""
    proxy = f"http://127.0.0.1:{free_ports(1)[0]}"
    said = unavailable_at(f"{vault.address}/{secret.path}?{approle(secret.policy)}&proxy={proxy}")
    assert said == "cannot reach the proxy: Connection refused"
