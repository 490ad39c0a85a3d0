"""A secret in a real server, a policy that lets one read it, and each way to log in."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.support.openbao import Admin, OpenBao
from tests.support.private_files import write_private_directory
from tests.support.real_vault import FIELDS, Login, Secret
from tests.support.tokenreview import TokenReview


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
