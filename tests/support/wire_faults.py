"""Faults for the proxy of `fault_proxy`: what becomes of a request, of its reply and of the connection."""

from __future__ import annotations

import threading

from tests.support.fault_proxy import Exchange, Fault, Reply


def lost_request(exchange: Exchange) -> None:
    """The server never sees it."""
    exchange.close()


def lost_reply(exchange: Exchange) -> None:
    """It happens, and nobody hears of it."""
    exchange.forward()
    exchange.close()


def reset_in_headers(exchange: Exchange) -> None:
    """It happens, and the connection breaks in the middle of the answer's headers."""
    exchange.send(exchange.forward().raw(exchange.asked.method)[:15])
    exchange.close(reset=True)


def cut_in_headers(exchange: Exchange) -> None:
    """The same, but the connection ends as if all had been said."""
    exchange.send(exchange.forward().raw(exchange.asked.method)[:30])
    exchange.close()


def truncated(exchange: Exchange) -> None:
    """The answer's headers come, and half of its body."""
    reply = exchange.forward()
    raw = reply.raw(exchange.asked.method)
    exchange.send(raw[: len(raw) - len(reply.body) // 2])
    exchange.close()


def truncated_unnoticed(exchange: Exchange) -> None:
    """The same from a server that says no length."""
    reply = exchange.forward()
    headers = [(key, value) for key, value in reply.headers if key.lower() != "content-length"]
    lines = ["HTTP/1.1 200 OK", *(f"{key}: {value}" for key, value in headers), "Connection: close", "", ""]
    exchange.send("\r\n".join(lines).encode("latin-1") + reply.body[: len(reply.body) // 2])
    exchange.close()


def silence(exchange: Exchange) -> None:
    """It never happens, and no answer comes either."""
    exchange.pause(None)
    exchange.close()


def drips(exchange: Exchange) -> None:
    """The answer comes, a byte a second."""
    for byte in exchange.forward().raw(exchange.asked.method):
        exchange.send(bytes([byte]))
        if exchange.pause(1):
            break
    exchange.close()


def unconditional(exchange: Exchange) -> None:
    """The server never sees the condition, as some stores do not look at it."""
    kept = [(key, value) for key, value in exchange.asked.headers if key.lower() != "if-none-match"]
    # The signature covers the header: these tests' servers get a fresh one from `resign`.
    exchange.answer(exchange.forward(exchange.resign(exchange.asked._replace(headers=kept))))


def says(status: int, code: str = "", *, message: str = "told to", headers: tuple[tuple[str, str], ...] = ()) -> Fault:
    """Answers in the store's stead, which never sees the request. Without a code the body is empty."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()

    def fault(exchange: Exchange) -> None:
        exchange.answer(Reply(status, [("Content-Type", "application/xml"), *headers], body if code else b""))

    return fault


def answers(body: str) -> Fault:
    """Answers with this body in the store's stead."""
    return lambda exchange: exchange.answer(Reply(200, [("Content-Type", "application/xml")], body.encode()))


def web_page(exchange: Exchange) -> None:
    """What a captive portal or a wrong port says."""
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
