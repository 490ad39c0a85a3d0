"""A server that says what a test has it say in Vault's place, and records what it is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from tests.support.fault_proxy import Asked, Exchange, Fault, FaultProxy, Reply

# Nothing listens there: whatever is asked is answered here.
_NOWHERE = "http://127.0.0.1:9"

TOKEN = "hvs.canary-token"
FIELDS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "canary-secret-key"}
LOGIN = {"auth": {"client_token": TOKEN, "accessor": "canary-accessor"}}
SECRET = {"data": {"data": FIELDS, "metadata": {"version": 1}}}


def answers(status: int, document: object, *, headers: Mapping[str, str] | None = None) -> Fault:
    """An answer in JSON, in one line."""
    return says(status, json.dumps(document).encode(), headers=headers)


def says(status: int, body: bytes = b"", *, headers: Mapping[str, str] | None = None) -> Fault:
    """An answer with this body."""

    def fault(exchange: Exchange) -> None:
        exchange.answer(Reply(status, [("Content-Type", "application/json"), *(headers or {}).items()], body))

    return fault


def sends(raw: bytes, *, reset: bool = False) -> Fault:
    """These bytes, and the end of the connection."""

    def fault(exchange: Exchange) -> None:
        exchange.send(raw)
        exchange.close(reset=reset)

    return fault


def stops_after(raw: bytes) -> Fault:
    """These bytes, and nothing more for as long as the test runs."""

    def fault(exchange: Exchange) -> None:
        exchange.send(raw)
        exchange.pause(None)
        exchange.close()

    return fault


def drips(exchange: Exchange) -> None:
    """Headers without end, a byte at a time, so that no read times out."""
    exchange.send(b"HTTP/1.1 200 OK\r\n")
    while not exchange.pause(0.02):
        exchange.send(b"X")
    exchange.close()


def echoes(status: int, *more: str) -> Fault:
    """A refusal that repeats all that it was sent, and `more`."""

    def fault(exchange: Exchange) -> None:
        asked = exchange.asked
        said = [asked.body.decode(), *(value for _, value in asked.headers), *more]
        exchange.answer(Reply(status, [], json.dumps({"errors": said}).encode()))

    return fault


class FakeVault:
    """Logs everyone in and has one secret, unless a step is told to do something else."""

    def __init__(self, *, login: Fault | None = None, read: Fault | None = None, revoke: Fault | None = None) -> None:
        self.wire = FaultProxy(_NOWHERE)
        self.address = self.wire.endpoint
        self.wire.spoil_all("POST", login or answers(200, LOGIN), part="/login")
        self.wire.spoil_all("GET", read or answers(200, SECRET))
        self.wire.spoil_all("POST", revoke or says(204), part="/revoke-self")

    @property
    def asked(self) -> list[Asked]:
        """Every request, in order."""
        return self.wire.asked

    @property
    def steps(self) -> list[str]:
        """Every request's method and target, in order."""
        return [f"{asked.method} {asked.target}" for asked in self.asked]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wire.stop()
