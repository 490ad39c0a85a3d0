"""Faults for the proxy of `fault_proxy`: what becomes of a request, of its reply and of the connection."""

from __future__ import annotations

import threading

from tests.support.fault_proxy import Exchange, Fault, Reply


def lost_request(exchange: Exchange) -> None:
    """The server never gets the request."""
    exchange.close()


def lost_reply(exchange: Exchange) -> None:
    """The server applies it, and the reply is lost."""
    exchange.forward()
    exchange.close()


def reset_in_headers(exchange: Exchange) -> None:
    """The server applies it, and the connection breaks in the middle of the reply's headers."""
    exchange.send(exchange.forward().raw(exchange.asked.method)[:15])
    exchange.close(reset=True)


def cut_in_headers(exchange: Exchange) -> None:
    """As `reset_in_headers`, but the connection is closed in the regular way."""
    exchange.send(exchange.forward().raw(exchange.asked.method)[:30])
    exchange.close()


def truncated(exchange: Exchange) -> None:
    """The reply's headers arrive, and half of its body."""
    reply = exchange.forward()
    raw = reply.raw(exchange.asked.method)
    exchange.send(raw[: len(raw) - len(reply.body) // 2])
    exchange.close()


def truncated_unnoticed(exchange: Exchange) -> None:
    """As `truncated`, from a server that sends no length."""
    reply = exchange.forward()
    headers = [(key, value) for key, value in reply.headers if key.lower() != "content-length"]
    lines = ["HTTP/1.1 200 OK", *(f"{key}: {value}" for key, value in headers), "Connection: close", "", ""]
    exchange.send("\r\n".join(lines).encode("latin-1") + reply.body[: len(reply.body) // 2])
    exchange.close()


def silence(exchange: Exchange) -> None:
    """The server never gets the request, and no reply comes."""
    exchange.pause(None)
    exchange.close()


def drips(exchange: Exchange) -> None:
    """The reply arrives at one byte per second."""
    for byte in exchange.forward().raw(exchange.asked.method):
        exchange.send(bytes([byte]))
        if exchange.pause(1):
            break
    exchange.close()


def unconditional(exchange: Exchange) -> None:
    """The server never gets the condition: some stores ignore it."""
    kept = [(key, value) for key, value in exchange.asked.headers if key.lower() != "if-none-match"]
    # The signature covers the header: these tests' servers get a fresh one from `resign`.
    exchange.answer(exchange.forward(exchange.resign(exchange.asked._replace(headers=kept))))


def says(status: int, code: str = "", *, message: str = "told to", headers: tuple[tuple[str, str], ...] = ()) -> Fault:
    """Answers instead of the store, which never gets the request. Without a code the body is empty."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()

    def fault(exchange: Exchange) -> None:
        exchange.answer(Reply(status, [("Content-Type", "application/xml"), *headers], body if code else b""))

    return fault


def answers(body: str) -> Fault:
    """Answers with this body instead of the store."""
    return lambda exchange: exchange.answer(Reply(200, [("Content-Type", "application/xml")], body.encode()))


def web_page(exchange: Exchange) -> None:
    """What a captive portal or a server on a wrong port sends."""
    page = b"<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><p>Log in, please<br></body></html>"
    exchange.answer(Reply(200, [("Content-Type", "text/html")], page))


def nothing_but_200(exchange: Exchange) -> None:
    exchange.answer(Reply(200, [], b""))


class Held:
    """A fault that lets a request happen or not, and then keeps the program waiting until the test is over."""

    def __init__(self, *, happens: bool) -> None:
        self._happens = happens
        self._reached = threading.Event()

    def __call__(self, exchange: Exchange) -> None:
        if self._happens:
            exchange.forward()
        self._reached.set()
        exchange.pause(None)
        exchange.close()

    def reached(self, seconds: float) -> bool:
        """Waits until the request has come; returns whether it has."""
        return self._reached.wait(seconds)
