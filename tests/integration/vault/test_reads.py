"""vault.1 to vault.5 with a real server: every login, version, mount and path."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.support.ca import CertificateAuthority
from tests.support.openbao import Admin, OpenBao
from tests.support.real_vault import CREDENTIALS, FIELDS, Login, Secret, invalid_at, read

pytestmark = pytest.mark.servers


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
    assert "cannot verify" in invalid_at(location)
    other = CertificateAuthority("Another").write(tmp_path, "other.pem")
    assert "cannot verify" in invalid_at(f"{location}&ca={other}", ca)


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
        assert "login: the server responded with status" in invalid_at(location)
        assert "login: the server responded with status 404" in invalid_at(f"{location}&namespace=other")
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
