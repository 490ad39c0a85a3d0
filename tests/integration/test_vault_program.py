"""The installed program with `vault:` sources: what its surroundings change (nothing), its words, its time."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.ca import CertificateAuthority, TlsFront
from tests.support.fake_vault import FakeVault, answers, drips, echoes, says, stops_after
from tests.support.fault_proxy import Asked, Fault, Wire, lost_request, web_page
from tests.support.openbao import Admin, OpenBao
from tests.support.private_files import write_private_directory
from tests.support.program import Result, run, start, without_narration
from tests.support.s3_roots import Place, make_place
from tests.support.servers import Key, KeyedServer, S3Server
from tests.support.tokenreview import TokenReview

SECRET_ID = "canary-secret-id"


class Source(NamedTuple):
    """A `vault:` source that finds an S3 server's credentials, and who may change them."""

    admin: Admin
    secret: str
    login: str
    store: S3Server

    def at(self, address: str, more: str = "") -> str:
        return f"vault:{address}/{self.secret}?{self.login}{more}"

    def hold(self, key: Key) -> None:
        """From now on the secret has this key."""
        self.admin.write(self.secret, {**key._asdict(), "endpoint": self.store.endpoint})


@pytest.fixture
def approle(tmp_path: Path) -> Path:
    return write_private_directory(tmp_path / "approle", {"role_id": "canary-role-id\n", "secret_id": f"{SECRET_ID}\n"})


def make_source(vault: OpenBao, store: S3Server, approle: Path) -> Source:
    """A role of its own, whose directory is `approle`."""
    admin = Admin(vault)
    secret = f"team/{secrets.token_hex(6)}"
    for name, value in admin.approle(admin.allow_reading(f"secret/data/{secret}"))._asdict().items():
        (approle / name).write_text(value)
    source = Source(admin, secret, f"auth=approle&approle={approle}", store)
    source.hold(store.key)
    return source


@pytest.fixture
def source(vault: OpenBao, moto: S3Server, approle: Path) -> Source:
    return make_source(vault, moto, approle)


@pytest.fixture
def place(moto: S3Server) -> Place:
    return make_place(moto)


def resolve(place: Place, creds: str, *words: str, env: dict[str, str] | None = None) -> Result:
    return run("resolve", "-checkpoint", place.url, "-creds", creds, *words, env=env)


# Nothing outside the location counts


class Surroundings(NamedTuple):
    """A home and an environment that would turn a client's head, and the trap that they lead to."""

    env: dict[str, str]
    trap: Wire
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
    with Wire(vault.address) as wire:
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
    with Wire(vault.address) as wire:
        name_of_it = source.at(wire.endpoint)
        refused = resolve(place, name_of_it, env={name: value})
        assert wire.asked == []
    assert refused.status == 1
    assert refused.out == b""
    (note,) = refused.notes
    assert note.startswith(f"credentials: {name_of_it}: ")
    assert name in note
    assert "canary" not in note


# One source after the other


@pytest.fixture
def directory(moto: S3Server, tmp_path: Path) -> str:
    """A `file:` source that answers."""
    fields = {**moto.key._asdict(), "endpoint": moto.endpoint}
    return f"file:{write_private_directory(tmp_path / 's3', fields)}"


def test_an_unavailable_source_is_skipped(place: Place, approle: Path, directory: str) -> None:
    """creds.4, vault.4."""
    creds = f"vault:http://127.0.0.1:9/s3?auth=approle&approle={approle},{directory}"
    assert resolve(place, creds) == Result(0, b"", b"")


def test_an_invalid_source_stops_the_run(place: Place, approle: Path, directory: str) -> None:
    """creds.4, vault.4, cli.9."""
    with FakeVault(login=echoes(403)) as server:
        name = f"vault:{server.address}/s3?auth=approle&approle={approle}"
        stopped = resolve(place, f"{name},{directory}")
    assert stopped.status == 1
    assert stopped.out == b""
    (note,) = stopped.notes
    assert note.startswith(f"credentials: {name}: login: the server responded with status 403: ")
    assert "canary" not in note


def test_if_no_source_is_available_each_is_named_with_its_reason(place: Place, approle: Path) -> None:
    """creds.4."""
    first = f"vault:http://127.0.0.1:9/s3?auth=approle&approle={approle}"
    second = "vault:http://127.0.0.1:9/s3?auth=kubernetes&role=r&token=/nonexistent"
    failed = resolve(place, f"{first},{second},file:/nonexistent")
    assert failed.status == 1
    why = [
        f"{first}: cannot reach the server: Connection refused",
        f"{second}: service-account token file not found: /nonexistent",
        "file:/nonexistent: directory not found",
    ]
    assert failed.notes == [f"credentials: no credentials found: {'; '.join(why)}"]


def test_a_silent_server_leaves_time_for_the_next_source(place: Place, approle: Path, directory: str) -> None:
    """vault.4: half of what was left is the next one's."""
    with FakeVault(login=drips) as server:
        creds = f"vault:{server.address}/s3?auth=approle&approle={approle},{directory}"
        assert resolve(place, creds, "-timeout", "12s") == Result(0, b"", b"")


def test_a_malformed_list_is_refused_before_any_source_is_accessed(place: Place, approle: Path) -> None:
    """creds.6, cli.9."""
    with FakeVault() as server:
        good = f"vault:{server.address}/s3?auth=approle&approle={approle}"
        for bad in (
            f"vault:{server.address.replace('//', '//user:canary@')}/s3?auth=approle&approle={approle}",
            f"{good}&proxy=http://user:canary@proxy.example",
            f"{good}&hvs.canary",
            "valt:x",
        ):
            refused = resolve(place, f"{good},{bad}")
            assert refused.status == 1
            (note,) = refused.notes
            assert note.startswith("credentials: -creds item 2")
            assert "canary" not in note
        assert server.asked == []


# No secret in any output


FAILURES: list[dict[str, Fault]] = [
    *({step: fault} for step in ("login", "read") for fault in (echoes(400), echoes(403), echoes(404), echoes(503))),
    *({step: fault} for step in ("login", "read") for fault in (web_page, lost_request, says(204), says(307))),
    *({step: stops_after(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")} for step in ("login", "read")),
    {"login": answers(200, {"auth": {"client_token": "canary\nX: y"}})},
    {"login": answers(200, {"auth": {"client_token": "canary"}, "data": ["canary"]}), "read": echoes(500, "canary")},
    {"read": answers(200, {"data": {"data": {"canary-secret-key": "x", "a": "canary-secret-key"}}})},
    {"read": answers(200, {"data": {"data": {"access_key_id": "canary\n", "secret_access_key": "canary"}}})},
    {"read": answers(200, {"data": {"data": {"access_key_id": "canary", "secret_access_key": "canary \ud800"}}})},
    {"read": answers(200, {"data": {"data": {"access_key_id": "a", "secret_access_key": "b", "endpoint": "canary"}}})},
    {"read": answers(200, {"data": {"data": {"access_key_id": "canary", "secret_access_key": 5}}})},
]


@pytest.mark.parametrize("steps", FAILURES)
def test_no_secret_is_in_any_output(place: Place, approle: Path, steps: dict[str, Fault]) -> None:
    """cli.9, vault.8: one line, no traceback, and the source by its name."""
    with FakeVault(**steps) as server:
        name = f"vault:{server.address}/s3?auth=approle&approle={approle}"
        failed = resolve(place, name, "-timeout", "4s")
    assert failed.status == 1
    assert failed.out == b""
    (note,) = failed.notes
    assert note.startswith("credentials: ")
    assert name in note
    assert "canary" not in note


def test_no_service_account_token_is_in_any_output(
    vault: OpenBao, reviews: TokenReview, place: Place, tmp_path: Path
) -> None:
    """cli.9: the review's own words repeat it."""
    admin = Admin(vault)
    role = admin.kubernetes(reviews, admin.allow_reading("secret/data/s3"))
    token = reviews.token()
    reviews.forget(token)
    (tmp_path / "token").write_text(token)
    failed = resolve(place, f"vault:{vault.address}/s3?auth=kubernetes&role={role}&token={tmp_path}/token")
    assert failed.status == 1
    (note,) = failed.notes
    assert "login: the server responded with status " in note
    assert token not in note


# A watch renews


def test_a_watch_picks_up_a_key_that_is_rotated_in_vault_and_at_the_store(
    vault: OpenBao, seaweedfs: KeyedServer, approle: Path
) -> None:
    """s3.12: InvalidAccessKeyId for real, the secret changed in the server, the run going on."""
    place = make_place(seaweedfs)
    source = make_source(vault, seaweedfs, approle)
    old, new = seaweedfs.add_key(), seaweedfs.add_key()
    source.hold(old)
    creds = source.at(vault.address)
    words = ("-framework", "hf", "-epoch", "3", "-attempt", "a", "-interval", "1h")

    def save(step: int) -> None:
        place.fill(f"exec/a/checkpoint-{step}/trainer_state.json", body=b'{"global_step": %d}' % step)

    save(1)
    with start("watch", "-checkpoint", place.url, "-creds", creds, *words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"step 1, " in process.stdout.readline()
        source.hold(new)
        seaweedfs.remove_key(old)
        save(2)
        process.send_signal(signal.SIGTERM)
        assert b"step 2, " in process.stdout.readline()
        assert process.wait(60) == 0
        said = without_narration(process.stderr.read()).decode()
    assert said.splitlines() == [
        "publish: the store rejected the credentials (InvalidAccessKeyId); resolving the sources again",
        f"publish: now using credentials from {creds}",
    ]
    assert new.secret_access_key not in said


def test_the_probe_names_the_vault_source(source: Source, vault: OpenBao, seaweedfs: KeyedServer) -> None:
    """probe.4."""
    place = make_place(seaweedfs)
    Source(source.admin, source.secret, source.login, seaweedfs).hold(seaweedfs.key)
    creds = source.at(vault.address)
    answered = run("probe", "-checkpoint", place.url, "-creds", creds)
    assert answered.status == 0
    assert creds.encode() in answered.out


def test_a_tls_server_with_a_private_ca(
    source: Source, vault: OpenBao, place: Place, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """vault.2, end to end."""
    front = TlsFront(vault.address, authority.issue("localhost", tmp_path))
    try:
        creds = source.at(front.address, f"&ca={authority.write(tmp_path)}")
        assert resolve(place, creds) == Result(0, b"", b"")
    finally:
        front.stop()
