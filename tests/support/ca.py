"""A private certificate authority, and a TLS front that stands before any server."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


class Pair(NamedTuple):
    """PEM files: a certificate with what it needs below the root, and its key."""

    certificate: Path
    key: Path


class CertificateAuthority:
    """Signs certificates that nothing trusts but who is given `certificate`, its own in PEM."""

    def __init__(self, name: str = "Test CertificateAuthority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        own = _builder(self._name, self._name, self._key.public_key()).add_extension(constraints, critical=True)
        self.certificate = own.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def write(self, folder: Path, name: str = "ca.pem") -> Path:
        """The authority's certificate in a file."""
        path = folder / name
        path.write_bytes(self.certificate)
        return path

    def issue(self, host: str, folder: Path, *, expired: bool = False) -> Pair:
        """A certificate for a host's name or address, with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        builder = _builder(_name(host), self._name, key.public_key(), expired=expired)
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
        pair = Pair(folder / f"{host}.pem", folder / f"{host}.key")
        pair.certificate.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return pair


class TlsTerminator:
    """Takes TLS at `localhost:port` and passes what is in it to `upstream`, a server's `http://host:port`."""

    def __init__(self, upstream: str, pair: Pair) -> None:
        parts = urlsplit(upstream)
        assert parts.hostname
        assert parts.port
        self._upstream = (parts.hostname, parts.port)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair.certificate, pair.key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"https://localhost:{self.port}"
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._listen)]
        self._threads[0].start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, raw: socket.socket) -> None:
        self._open.add(raw)
        # A client that does not like the certificate, or goes away, is not an error here.
        with contextlib.suppress(OSError), raw, self._context.wrap_socket(raw, server_side=True) as client:
            self._open.add(client)
            with socket.create_connection(self._upstream) as server:
                _relay(client, server)


MakeTlsTerminator = Callable[..., TlsTerminator]


def _relay(client: ssl.SSLSocket, server: socket.socket) -> None:
    """Carries bytes both ways until either side ends."""
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, (client, server))
        selector.register(server, selectors.EVENT_READ, (server, client))
        while True:
            for key, _ in selector.select():
                source, target = key.data
                data = source.recv(65536)
                while isinstance(source, ssl.SSLSocket) and source.pending():
                    data += source.recv(65536)
                if not data:
                    return
                target.sendall(data)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, expired: bool = False
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    end = now - _DAY if expired else now + _DAY
    builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number())
    return builder.not_valid_before(end - 3 * _DAY).not_valid_after(end)
