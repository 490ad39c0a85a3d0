"""A stand-in for a Kubernetes cluster: all that Vault's kubernetes method asks of one.

It answers TokenReviews (kubernetes.io, API reference, TokenReview v1) for the tokens it has made.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.ca import CertificateAuthority

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_DAY = 24 * 3600


class TokenReview:
    """Runs until it is stopped. `peer` is the host under which the Vault server reaches it."""

    namespace = "training"
    account = "trainer"

    def __init__(self, peer: str = "127.0.0.1") -> None:
        self._good: set[str] = set()
        self.reviewed: list[str] = []
        """The tokens that were asked about, in order."""
        # Beyond loopback only where a contained server must reach it.
        self._server = _Server("127.0.0.1" if peer == "127.0.0.1" else "", self)
        self.address = f"http://{peer}:{self._server.server_port}"
        self.some_certificate = CertificateAuthority("unused, yet Vault wants one").certificate.decode()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def token(self) -> str:
        """A fresh service-account token, good until `forget`."""
        now = int(time.time())
        claims = {
            "iss": "https://kubernetes.default.svc",
            "sub": f"system:serviceaccount:{self.namespace}:{self.account}",
            "iat": now,
            "nbf": now,
            "exp": now + _DAY,
            "jti": secrets.token_hex(8),
            "kubernetes.io": {"namespace": self.namespace, "serviceaccount": {"name": self.account, "uid": "u-1"}},
        }
        token = ".".join(map(_part, (b'{"alg":"RS256","typ":"JWT"}', json.dumps(claims).encode(), b"signature")))
        self._good.add(token)
        return token

    def forget(self, token: str) -> None:
        """From now on the token is not good."""
        self._good.remove(token)

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def judge(self, token: str) -> dict[str, object]:
        self.reviewed.append(token)
        if token not in self._good:
            return {"authenticated": False, "error": f"never heard of {token}"}
        user = {
            "username": f"system:serviceaccount:{self.namespace}:{self.account}",
            "uid": "u-1",
            "groups": ["system:serviceaccounts"],
        }
        return {"authenticated": True, "user": user}


def _part(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


class _Server(ThreadingHTTPServer):
    def __init__(self, host: str, reviews: TokenReview) -> None:
        self.reviews = reviews
        super().__init__((host, 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == _PATH
        status = self.server.reviews.judge(asked["spec"]["token"])
        body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}).encode()
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (http.server's name)
        """Keeps quiet."""
