"""vault.4 with a real server: each refusal, and whether the source is invalid or unavailable."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.support.openbao import Admin, OpenBao
from tests.support.real_vault import CREDENTIALS, FIELDS, Login, Secret, invalid_at, read, unavailable_at
from tests.support.servers import free_ports
from tests.support.tokenreview import TokenReview

pytestmark = pytest.mark.servers


def test_refused_logins_are_errors(
    vault: OpenBao, secret: Secret, approle: Login, kubernetes: Login, reviews: TokenReview, tmp_path: Path
) -> None:
    """vault.4, vault.8."""
    place = f"{vault.address}/{secret.path}"
    good = approle(secret.policy)
    directory = Path(good.rpartition("=")[2])
    (directory / "secret_id").write_text("canary-secret-id")
    assert invalid_at(f"{place}?{good}").startswith("login: the server responded with status 400: invalid ")
    assert invalid_at(f"{place}?{approle(secret.policy)}&authmount=other").startswith(
        "login: the server responded with status 4"
    )

    token = tmp_path / "token"
    token.write_text(reviews.token())
    role = kubernetes(secret.policy).partition("&token=")[0]
    assert invalid_at(f"{place}?auth=kubernetes&role=nobody&token={token}").startswith(
        "login: the server responded with status 4"
    )
    reviews.forget(token.read_text())
    said = invalid_at(f"{place}?{role}&token={token}")
    assert said.startswith("login: the server responded with status 4")
    assert token.read_text() not in said
    token.write_text("canary, and no token")
    assert "whitespace" in invalid_at(f"{place}?{role}&token={token}")
    token.write_text("canary-and-no-token")
    assert invalid_at(f"{place}?{role}&token={token}").startswith("login: the server responded with status ")


def test_a_used_up_secret_id_is_an_error(vault: OpenBao, secret: Secret, approle: Login) -> None:
    """vault.4."""
    location = f"{vault.address}/{secret.path}?{approle(secret.policy, secret_id_num_uses=1)}"
    assert read(location) == CREDENTIALS
    assert invalid_at(location).startswith("login: the server responded with status 400")


def test_refused_reads_are_errors_and_leave_no_token(
    vault: OpenBao, admin: Admin, secret: Secret, approle: Login
) -> None:
    """vault.4, vault.5."""
    everything = admin.allow_reading("secret/*")
    login = approle(everything)
    before = admin.tokens()
    said = invalid_at(f"{vault.address}/{secret.path}?{approle(admin.allow_reading('secret/data/else'))}")
    assert said == "read: the server responded with status 403: 1 error occurred: * permission denied"
    assert invalid_at(f"{vault.address}/none?{login}").startswith(
        "read: the server responded with status 404: not found"
    )
    assert invalid_at(f"{vault.address}/{secret.path}?{login}&kv=1").startswith(
        "read: the server responded with status 404"
    )
    admin.ask("DELETE", f"secret/data/{secret.path}")
    assert "whether it was deleted)" in invalid_at(f"{vault.address}/{secret.path}?{login}")
    admin.ask("POST", f"secret/destroy/{secret.path}", {"versions": [1]})
    assert "whether it was deleted)" in invalid_at(f"{vault.address}/{secret.path}?{login}")
    assert admin.tokens() == before


def test_version_1_read_as_version_2_is_an_error(vault: OpenBao, admin: Admin, approle: Login) -> None:
    """vault.4."""
    mount = f"kv-{secrets.token_hex(4)}"
    admin.mount_kv(mount, 1)
    admin.write("s3", FIELDS, mount, 1)
    said = invalid_at(f"{vault.address}/s3?mount={mount}&{approle(admin.allow_reading(f'{mount}/*'))}")
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
    assert words in invalid_at(f"{vault.address}/{secret.path}?{approle(secret.policy)}")


def test_a_sealed_server_is_an_error(approle: Login) -> None:
    """vault.4: it is there, and nothing is tried again."""
    server = OpenBao()
    try:
        admin = Admin(server)
        login = approle(admin.allow_reading("secret/*"), owner=admin)
        admin.ask("PUT", "sys/seal")
        assert invalid_at(f"{server.address}/s3?{login}").startswith("login: the server responded with status 503")
    finally:
        server.stop()


def test_a_stopped_server_is_unavailable(vault: OpenBao, secret: Secret, approle: Login) -> None:
    """vault.4."""
    port = free_ports(1)[0]
    said = unavailable_at(f"http://127.0.0.1:{port}/{secret.path}?{approle(secret.policy)}")
    assert said == "cannot reach the server: Connection refused"
