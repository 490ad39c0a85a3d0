"""An HTTP proxy in front of a server that injects faults.

It records every request. A fault applies to one request; a request without a fault is forwarded.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qs, urlsplit


class Asked(NamedTuple):
    """A request. `target` is the path and query as sent, `headers` in the order and case sent."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {key: value for key, (value, *_) in parse_qs(urlsplit(self.target).query, True).items()}

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Reply(NamedTuple):
    """An answer. `headers` lack the length of `body`, which is added."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def raw(self, method: str) -> bytes:
        length = [] if any(key.lower() == "content-length" for key, _ in self.headers) else [len(self.body)]
        lines = [f"HTTP/1.1 {self.status} Whatever", *(f"{key}: {value}" for key, value in self.headers)]
        lines += [f"Content-Length: {size}" for size in length]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return head if method == "HEAD" else head + self.body


class Exchange:
    """One request, and what a fault may do with it."""

    def __init__(self, asked: Asked, handler: _Handler) -> None:
        self.asked = asked
        self._handler = handler
        self._wire = handler.server.wire

    def forward(self, asked: Asked | None = None) -> Reply:
        """Lets the server have the request, and returns what it says."""
        asked = asked or self.asked
        connection = HTTPConnection(*self._wire.upstream, timeout=60)
        try:
            connection.putrequest(asked.method, asked.target, skip_host=True, skip_accept_encoding=True)
            for key, value in asked.headers:
                connection.putheader(key, value)
            connection.endheaders(asked.body or None)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        dropped = {"transfer-encoding", "connection"} | ({"content-length"} if asked.method != "HEAD" else set())
        return Reply(answer.status, [(k, v) for k, v in answer.getheaders() if k.lower() not in dropped], body)

    def resign(self, asked: Asked) -> Asked:
        """A changed request with a signature that the server accepts."""
        return self._wire.resign(asked)

    def send(self, raw: bytes) -> None:
        self._handler.wfile.write(raw)
        self._handler.wfile.flush()

    def answer(self, reply: Reply) -> None:
        self.send(reply.raw(self.asked.method))

    def close(self, *, reset: bool = False) -> None:
        """Ends the connection; `reset`: as a machine does that has fallen over."""
        if reset:
            self._handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._handler.close_connection = True

    def pause(self, seconds: float | None) -> bool:
        """Waits (None: for ever); returns whether the test is over."""
        return self._wire.over.wait(seconds)


Fault = Callable[[Exchange], None]


def passes(exchange: Exchange) -> None:
    exchange.answer(exchange.forward())


class FaultProxy:
    """Stands before `upstream`, a server's `http://host:port`, at an endpoint of its own."""

    def __init__(self, upstream: str, resign: Callable[[Asked], Asked] = lambda asked: asked) -> None:
        parts = urlsplit(upstream)
        assert parts.hostname
        assert parts.port
        self.upstream = (parts.hostname, parts.port)
        self.resign = resign
        self.asked: list[Asked] = []
        self.over = threading.Event()
        self._faults: list[tuple[Callable[[Asked], bool], Fault, bool]] = []
        self._lock = threading.Lock()
        self._server = _Server(self)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def spoil(self, method: str, *faults: Fault, part: str = "") -> None:
        """The next requests of this method ("*": of any), with `part` in their target, meet one fault each."""
        with self._lock:
            self._faults += [(_matcher(method, part), fault, False) for fault in faults]

    def spoil_all(self, method: str, fault: Fault, *, part: str = "") -> None:
        """All requests to come of this method, with `part` in their target, meet the fault."""
        with self._lock:
            self._faults.append((_matcher(method, part), fault, True))

    def heal(self) -> None:
        """From now on all passes."""
        with self._lock:
            self._faults.clear()

    def sent(self, method: str, part: str = "") -> list[Asked]:
        """The requests of this method so far, with `part` in their target."""
        return [asked for asked in self.asked if _matcher(method, part)(asked)]

    @property
    def connections(self) -> int:
        """How many came so far."""
        return self._server.accepted

    def stop(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _fault_for(self, asked: Asked) -> Fault:
        with self._lock:
            self.asked.append(asked)
            for position, (matches, fault, lasting) in enumerate(self._faults):
                if matches(asked):
                    if not lasting:
                        del self._faults[position]
                    return fault
        return passes


def _matcher(method: str, part: str) -> Callable[[Asked], bool]:
    return lambda asked: method in (asked.method, "*") and part in asked.target


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, wire: FaultProxy) -> None:
        self.wire = wire
        self.accepted = 0
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def end(self) -> None:
        """Ends the connections that clients keep, so that every thread ends, and closes."""
        for one in list(self._open):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self.server_close()

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]  # typeshed's union
        self.accepted += 1
        self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.discard(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is not an error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = Asked(self.command, self.path, list(self.headers.items()), self.rfile.read(length))
        exchange = Exchange(asked, self)
        self.server.wire._fault_for(asked)(exchange)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_CONNECT = _handle  # noqa: N815  (http.server's names)

    def handle_expect_100(self) -> bool:
        """Says nothing, as some stores do."""
        return True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (http.server's name)
        """Keeps quiet."""
