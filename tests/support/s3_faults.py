"""What the tests of faults on S3 share: saves to read, and what a store raises when every request meets a fault."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping

import pytest

from publish.adapters.s3 import S3Store
from publish.domain.errors import StoreFault
from publish.domain.ports import Namespace
from tests.support.fault_proxy import Fault, FaultProxy
from tests.support.moto_server import Moto
from tests.support.s3_roots import Place, make_place
from tests.support.variants import variants
from tests.support.wire_faults import says, web_page

CONFLICT = says(409, "ConditionalRequestConflict")
BUSY = {
    "500": says(500, "InternalError"),
    "bare 500": says(500),
    "502": says(502),
    "503": says(503, "SlowDown"),
    "bare 503": says(503),
    "504": says(504),
    "429": says(429),
}
ELSEWHERE = says(307, "TemporaryRedirect", headers=(("Location", "http://127.0.0.1:1/"),))
# What ends a verb, and a word of what it then says.
FINAL = {
    "expired": (says(400, "ExpiredToken"), "ExpiredToken"),
    "denied": (says(403, "AccessDenied"), "AccessDenied"),
    "skewed": (says(403, "RequestTimeTooSkewed"), "clock"),
    "elsewhere": (ELSEWHERE, "check endpoint and region"),
    "not implemented": (says(501, "NotImplemented"), "NotImplemented"),
    "web page": (web_page, "check the endpoint"),
}


def each_kind(faults: Mapping[str, Fault], *before: str) -> list[object]:
    """Parameters for each fault, after those that come `before`.

    Of the responses of a busy store, which are handled alike, `make test` tries one.
    """
    return variants(faults, *before, exhaustive=BUSY.keys() - {"503"})


NAME = b"00000000000000000001-00000000000000000002-MFRGG"


def filled_place(moto: Moto) -> Place:
    """An S3 root with a few objects."""
    place = make_place(moto)
    place.fill("s/a", "s/b", "s/trainer_state.json", body=b"some bytes to cut in two")
    return place


def translate(wire: FaultProxy, fault: Fault, call: Callable[[], object]) -> StoreFault:
    """What the store raises when every request meets `fault`."""
    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        wire.spoil_all(method, fault)
    with pytest.raises(StoreFault) as raised:
        call()
    return raised.value


def write(store: S3Store) -> Callable[[], object]:
    """A put of a fresh name."""
    return lambda: store.create(Namespace.PUB, secrets.token_hex(8).encode())


def read(store: S3Store) -> Callable[[], object]:
    """A listing of the log."""
    return lambda: store.list_entries(Namespace.PUB, None)


def every_call(store: S3Store) -> list[tuple[bool, Callable[[], object]]]:
    """Each of a store's calls, and whether it begins with a write."""
    return [
        (True, write(store)),
        (True, lambda: store.remove_entries(Namespace.PUB, [NAME, NAME + b"2"])),
        (False, read(store)),
        (False, lambda: store.size(b"s/a")),
        (False, lambda: store.read(b"s/a", 10)),
        (False, lambda: store.save_exists(b"s")),
        (False, lambda: store.list_directories(b"", None)),
        (False, lambda: store.remove_tree(b"s", ())),
    ]
