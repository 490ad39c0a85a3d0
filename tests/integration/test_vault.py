"""V against a real server: every login, version, way there and refusal."""

from __future__ import annotations

import re
import secrets
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from publish.adapters.ca_bundle import system_ca_bundle
from publish.adapters.vault import VaultSource
from publish.domain.credentials import Credentials
from publish.domain.errors import CredentialsError, SourceUnavailable
from publish.domain.vault_url import parse_vault_url
from tests.support.ca import CertificateAuthority, MakeFront
from tests.support.openbao import Admin, OpenBao
from tests.support.private_files import write_private_directory
from tests.support.proxies import TinyProxy
from tests.support.servers import free_ports
from tests.support.tokenreview import TokenReview

pytestmark = pytest.mark.servers

# Seconds; what comes of these tests comes at once.
PLENTY = 60.0
FIELDS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "canary-secret-key", "region": "eu-west-1"}
CREDENTIALS = Credentials("AKIDEXAMPLE", "canary-secret-key", None, None, "eu-west-1")

Login = Callable[..., str]


class Secret(NamedTuple):
    """A secret's path, and a policy that lets one read it."""

    path: str
    policy: str


@pytest.fixture
def admin(vault: OpenBao) -> Admin:
    return Admin(vault)


@pytest.fixture
def secret(admin: Admin) -> Secret:
    path = f"team/{secrets.token_hex(6)}"
    admin.write(path, FIELDS)
    return Secret(path, admin.allow_reading(f"secret/data/{path}"))


@pytest.fixture
def approle(admin: Admin, tmp_path: Path) -> Login:
    """Makes a role and its directory; gives the location's part of it."""

    def make(policy: str, mount: str = "approle", owner: Admin = admin, **more: object) -> str:
        fields = {name: value + "\n" for name, value in owner.approle(policy, mount, **more)._asdict().items()}
        directory = write_private_directory(tmp_path / f"approle-{secrets.token_hex(4)}", fields)
        return f"auth=approle&approle={directory}"

    return make


@pytest.fixture
def kubernetes(admin: Admin, reviews: TokenReview, tmp_path: Path) -> Login:
    """Makes a role and a service account's token; gives the location's part of it."""

    def make(policy: str, mount: str = "kubernetes") -> str:
        token = tmp_path / f"token-{secrets.token_hex(4)}"
        token.write_text(reviews.token() + "\n")
        return f"auth=kubernetes&role={admin.kubernetes(reviews, policy, mount)}&token={token}"

    return make


@pytest.fixture(params=["approle", "kubernetes"])
def login(request: pytest.FixtureRequest) -> Login:
    """Each way to log in."""
    chosen: Login = request.getfixturevalue(request.param)
    return chosen


def read(location: str, trust: str | Path | None = None) -> Credentials:
    source = VaultSource(
        f"vault:{location}",
        parse_vault_url(location),
        ca_bundle=str(trust or system_ca_bundle()),
        environment={},
        timeout=60,
    )
    return source.read(PLENTY)


def failure(location: str, trust: str | Path | None = None) -> CredentialsError:
    with pytest.raises(CredentialsError) as raised:
        read(location, trust)
    assert "canary" not in "".join(traceback.format_exception(raised.value))
    return raised.value


def wrong(location: str, trust: str | Path | None = None) -> str:
    fault = failure(location, trust)
    assert not isinstance(fault, SourceUnavailable), fault
    return str(fault)


def absent(location: str, trust: str | Path | None = None) -> str:
    fault = failure(location, trust)
    assert isinstance(fault, SourceUnavailable), fault
    return str(fault)


# What works


def test_each_login_reads_the_secret_and_leaves_no_token(
    vault: OpenBao, admin: Admin, secret: Secret, login: Login
) -> None:
    """vault.1, vault.2, vault.5."""
    location = f"{vault.address}/{secret.path}?{login(secret.policy)}"
    before = admin.tokens()
    assert read(location) == CREDENTIALS
    assert admin.tokens() == before


def test_each_login_by_tls_with_a_private_ca(
    vault: OpenBao, authority: CertificateAuthority, secret: Secret, login: Login, tmp_path: Path
) -> None:
    """vault.2, s3.14: `ca=`, or the node's own bundle."""
    ca = authority.write(tmp_path)
    location = f"{vault.tls_address}/{secret.path}?{login(secret.policy)}"
    assert read(f"{location}&ca={ca}") == CREDENTIALS
    assert read(location, ca) == CREDENTIALS
    assert "cannot verify" in wrong(location)
    other = CertificateAuthority("Another").write(tmp_path, "other.pem")
    assert "cannot verify" in wrong(f"{location}&ca={other}", ca)


def test_kv_version_1(vault: OpenBao, admin: Admin, login: Login) -> None:
    """vault.2."""
    mount = f"kv-{secrets.token_hex(4)}"
    admin.mount_kv(mount, 1)
    admin.write("s3", FIELDS, mount, 1)
    policy = admin.allow_reading(f"{mount}/s3")
    assert read(f"{vault.address}/s3?mount={mount}&kv=1&{login(policy)}") == CREDENTIALS


def test_other_mounts_of_the_engine_and_of_the_method(vault: OpenBao, admin: Admin, login: Login) -> None:
    """vault.2: a mount may have a slash in it."""
    mount, auth = f"deep/kv-{secrets.token_hex(4)}", f"deep/auth-{secrets.token_hex(4)}"
    admin.mount_kv(mount, 2)
    admin.write("team/s3", FIELDS, mount)
    policy = admin.allow_reading(f"{mount}/data/team/s3")
    location = f"{vault.address}/team/s3?mount={mount}&authmount={auth}&{login(policy, auth)}"
    assert read(location) == CREDENTIALS


@pytest.mark.parametrize(
    ("written", "asked"), [("a,b", "a%2Cb"), ("a%2Fb", "a%252Fb"), ("a+b;c=d&e", "a+b;c=d%26e"), ("café", "café")]
)
def test_a_path_with_every_kind_of_character(
    vault: OpenBao, admin: Admin, approle: Login, written: str, asked: str
) -> None:
    """vault.3: decoded once, and what Vault decodes is the path again."""
    base = secrets.token_hex(6)
    quoted = written.replace("%", "%25").replace("+", "%2B").replace(";", "%3B").replace("é", "%C3%A9")
    admin.write(f"{base}/{quoted}", FIELDS)
    policy = admin.allow_reading(f"secret/data/{base}/*")
    assert read(f"{vault.address}/{base}/{asked}?{approle(policy)}") == CREDENTIALS


def test_a_namespace(tmp_path: Path, approle: Login) -> None:
    """vault.2. OpenBao's own: Vault has them in its enterprise edition alone."""
    server = OpenBao()
    try:
        inside = Admin(server).make_namespace("team")
        inside.mount_kv("secret", 2)
        inside.write("s3", FIELDS)
        policy = inside.allow_reading("secret/data/s3")
        location = f"{server.address}/s3?{approle(policy, owner=inside)}"
        assert read(f"{location}&namespace=team") == CREDENTIALS
        assert "login: the server responded with status" in wrong(location)
        assert "login: the server responded with status 404" in wrong(f"{location}&namespace=other")
    finally:
        server.stop()


def test_a_token_that_cannot_be_revoked_is_ignored(vault: OpenBao, secret: Secret, approle: Login) -> None:
    """vault.5: a batch token."""
    assert read(f"{vault.address}/{secret.path}?{approle(secret.policy, token_type='batch')}") == CREDENTIALS


def test_the_latest_version_is_read(vault: OpenBao, admin: Admin, secret: Secret, approle: Login) -> None:
    location = f"{vault.address}/{secret.path}?{approle(secret.policy)}"
    assert read(location) == CREDENTIALS
    admin.write(secret.path, {**FIELDS, "session_token": "second"})
    assert read(location).session_token == "second"


# What does not


def test_refused_logins_are_errors(
    vault: OpenBao, secret: Secret, approle: Login, kubernetes: Login, reviews: TokenReview, tmp_path: Path
) -> None:
    """vault.4, vault.8."""
    place = f"{vault.address}/{secret.path}"
    good = approle(secret.policy)
    directory = Path(good.rpartition("=")[2])
    (directory / "secret_id").write_text("canary-secret-id")
    assert wrong(f"{place}?{good}").startswith("login: the server responded with status 400: invalid ")
    assert wrong(f"{place}?{approle(secret.policy)}&authmount=other").startswith(
        "login: the server responded with status 4"
    )

    token = tmp_path / "token"
    token.write_text(reviews.token())
    role = kubernetes(secret.policy).partition("&token=")[0]
    assert wrong(f"{place}?auth=kubernetes&role=nobody&token={token}").startswith(
        "login: the server responded with status 4"
    )
    reviews.forget(token.read_text())
    said = wrong(f"{place}?{role}&token={token}")
    assert said.startswith("login: the server responded with status 4")
    assert token.read_text() not in said
    token.write_text("canary, and no token")
    assert "whitespace" in wrong(f"{place}?{role}&token={token}")
    token.write_text("canary-and-no-token")
    assert wrong(f"{place}?{role}&token={token}").startswith("login: the server responded with status ")


def test_a_used_up_secret_id_is_an_error(vault: OpenBao, secret: Secret, approle: Login) -> None:
    """vault.4."""
    location = f"{vault.address}/{secret.path}?{approle(secret.policy, secret_id_num_uses=1)}"
    assert read(location) == CREDENTIALS
    assert wrong(location).startswith("login: the server responded with status 400")


def test_refused_reads_are_errors_and_leave_no_token(
    vault: OpenBao, admin: Admin, secret: Secret, approle: Login
) -> None:
    """vault.4, vault.5."""
    everything = admin.allow_reading("secret/*")
    login = approle(everything)
    before = admin.tokens()
    said = wrong(f"{vault.address}/{secret.path}?{approle(admin.allow_reading('secret/data/else'))}")
    assert said == "read: the server responded with status 403: 1 error occurred: * permission denied"
    assert wrong(f"{vault.address}/none?{login}").startswith("read: the server responded with status 404: not found")
    assert wrong(f"{vault.address}/{secret.path}?{login}&kv=1").startswith("read: the server responded with status 404")
    admin.ask("DELETE", f"secret/data/{secret.path}")
    assert "whether it was deleted)" in wrong(f"{vault.address}/{secret.path}?{login}")
    admin.ask("POST", f"secret/destroy/{secret.path}", {"versions": [1]})
    assert "whether it was deleted)" in wrong(f"{vault.address}/{secret.path}?{login}")
    assert admin.tokens() == before


def test_version_1_read_as_version_2_is_an_error(vault: OpenBao, admin: Admin, approle: Login) -> None:
    """vault.4."""
    mount = f"kv-{secrets.token_hex(4)}"
    admin.mount_kv(mount, 1)
    admin.write("s3", FIELDS, mount, 1)
    said = wrong(f"{vault.address}/s3?mount={mount}&{approle(admin.allow_reading(f'{mount}/*'))}")
    assert said.startswith("read: the server responded with status 404")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({**FIELDS, "password": "canary"}, "unknown field ("),
        ({**FIELDS, "region": 5}, "not a string: region"),
        ({**FIELDS, "region": "eu-west-1\n"}, "field contains whitespace: region"),
        ({"access_key_id": "AKID"}, "missing field: secret_access_key"),
    ],
)
def test_a_secret_with_invalid_fields_is_an_error(
    vault: OpenBao, admin: Admin, secret: Secret, approle: Login, fields: dict[str, object], words: str
) -> None:
    """creds.2, vault.7."""
    admin.write(secret.path, fields)
    assert words in wrong(f"{vault.address}/{secret.path}?{approle(secret.policy)}")


def test_a_sealed_server_is_an_error(approle: Login) -> None:
    """vault.4: it is there, and nothing is tried again."""
    server = OpenBao()
    try:
        admin = Admin(server)
        login = approle(admin.allow_reading("secret/*"), owner=admin)
        admin.ask("PUT", "sys/seal")
        assert wrong(f"{server.address}/s3?{login}").startswith("login: the server responded with status 503")
    finally:
        server.stop()


def test_a_stopped_server_is_unavailable(vault: OpenBao, secret: Secret, approle: Login) -> None:
    """vault.4."""
    port = free_ports(1)[0]
    said = absent(f"http://127.0.0.1:{port}/{secret.path}?{approle(secret.policy)}")
    assert said == "cannot reach the server: Connection refused"


# Proxies


def carried_by(proxy: TinyProxy) -> list[str]:
    """What it was asked for: `METHOD target`, in order."""
    return re.findall(r"Request \(file descriptor [0-9]+\): ([A-Z]+ \S+) HTTP", proxy.asked())


def test_a_proxy_carries_every_request_to_a_plain_server(
    vault: OpenBao, secret: Secret, login: Login, tinyproxy: TinyProxy
) -> None:
    """proxy.1, proxy.3: loopback is no exception."""
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
    assert wrong(location).startswith("cannot verify the TLS certificate of the server")


def test_a_tls_proxy_is_verified_with_the_system_bundle_and_never_with_ca(
    vault: OpenBao,
    authority: CertificateAuthority,
    secret: Secret,
    approle: Login,
    tinyproxy: TinyProxy,
    tls: MakeFront,
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
    assert wrong(f"{through_tls}{tls(tinyproxy.url, signer=authority).address}", roots).startswith(
        "cannot verify the TLS certificate of the proxy"
    )
    server = tls(vault.address, signer=nodes).address
    assert wrong(f"{server}/{secret.path}?{login}&ca={ca}&proxy={proxy}", roots).startswith(
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
        said = wrong(f"{location}&proxy={proxy.url}")
        assert said == "the proxy refused to connect to the server with status 403"
    finally:
        proxy.stop()


def test_a_stopped_proxy_is_unavailable_and_not_bypassed(vault: OpenBao, secret: Secret, approle: Login) -> None:
    """vault.4, proxy.3."""
    proxy = f"http://127.0.0.1:{free_ports(1)[0]}"
    said = absent(f"{vault.address}/{secret.path}?{approle(secret.policy)}&proxy={proxy}")
    assert said == "cannot reach the proxy: Connection refused"
