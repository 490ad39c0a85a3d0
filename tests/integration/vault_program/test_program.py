"""The installed program with `vault:` sources: no secret in its output, a refresh, a probe, a private CA."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.ca import CertificateAuthority, TlsTerminator
from tests.support.fake_vault import FakeVault, answers, echoes, says, stops_after
from tests.support.fault_proxy import Fault
from tests.support.openbao import Admin, OpenBao
from tests.support.program import Result, run, start, without_narration
from tests.support.s3_roots import Place, make_place
from tests.support.servers import KeyedServer, S3Server
from tests.support.tokenreview import TokenReview
from tests.support.variants import SERVERS
from tests.support.vault_jobs import Source, make_source, resolve
from tests.support.wire_faults import lost_request, web_page

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


@pytest.mark.parametrize("s3_server", SERVERS, indirect=True)
def test_the_probe_names_the_vault_source(source: Source, vault: OpenBao, s3_server: S3Server) -> None:
    """probe.4."""
    place = make_place(s3_server)
    Source(source.admin, source.secret, source.login, s3_server).hold(s3_server.key)
    creds = source.at(vault.address)
    answered = run("probe", "-checkpoint", place.url, "-creds", creds)
    assert answered.status == 0
    assert creds.encode() in answered.out


def test_a_tls_server_with_a_private_ca(
    source: Source, vault: OpenBao, place: Place, authority: CertificateAuthority, tmp_path: Path
) -> None:
    """vault.2, end to end."""
    front = TlsTerminator(vault.address, authority.issue("localhost", tmp_path))
    try:
        creds = source.at(front.address, f"&ca={authority.write(tmp_path)}")
        assert resolve(place, creds) == Result(0, b"", b"")
    finally:
        front.stop()
