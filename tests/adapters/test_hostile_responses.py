"""s3.15, vault.9: whatever a store, a Vault or a proxy sends, it costs little memory and no endless computation."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.ca import CertificateAuthority
from tests.support.fault_proxy import Exchange, Fault, FaultProxy
from tests.support.private_files import write_private_directory
from tests.support.variants import variants

MAX_MEMORY = 100 * 2**20
# Nothing listens there: every request is answered by a fault.
NOWHERE = "http://127.0.0.1:9"

# Calls each method in a thread, as the program does, and prints what each came to and the peak of memory.
S3 = """
import json, sys, threading
from publish.adapters.s3 import ConnectionSettings, S3Store
from publish.domain.credentials import Credentials
from publish.domain.ports import Namespace
from publish.domain.root import S3Root
endpoint, bundle, seconds = sys.argv[1:]
store = S3Store(
    S3Root("bucket", "run"), Credentials("AKID", "canary", None, endpoint, "us-east-1"),
    ConnectionSettings(None, bundle, 2.0),
)
calls = {
    "list": lambda: store.list_entries(Namespace.PUB, None),
    "create": lambda: store.create(Namespace.PUB, b"x"),
    "remove": lambda: store.remove_entries(Namespace.PUB, [b"x", b"y"]),
    "read": lambda: store.read(b"x", 2**20),
    "size": lambda: store.size(b"x"),
}
"""
VAULT = """
import json, sys, threading
from publish.adapters.vault import VaultSource
from publish.domain.vault_url import parse_vault_url
address, approle, bundle, seconds = sys.argv[1:]
location = f"{address}/s3?auth=approle&approle={approle}"
source = VaultSource("vault:", parse_vault_url(location), ca_bundle=bundle, environment={}, timeout=60)
calls = {"read": lambda: source.read(2)}
"""
RUN = """
results = {}
def run(name, call):
    try:
        call()
        results[name] = "ok"
    except BaseException as error:
        results[name] = type(error).__name__
for name, call in calls.items():
    thread = threading.Thread(target=run, args=(name, call), daemon=True)
    thread.start()
    thread.join(float(seconds))
    results.setdefault(name, "still running")
# Not ru_maxrss, which counts the process that started this one, too.
(peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps([results, int(peak.split()[1]) * 1024]), flush=True)
"""

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
XML = b"<ListBucketResult><IsTruncated>false</IsTruncated>"


def endless(head: bytes, unit: bytes) -> Fault:
    """`head`, and then `unit` until the client goes away."""
    block = unit * (1 + 2**16 // len(unit))

    def fault(exchange: Exchange) -> None:
        with suppress(OSError):
            exchange.send(head)
            while not exchange.pause(0):
                exchange.send(block)
        exchange.close()

    return fault


def body(make: Callable[[], bytes], *headers: bytes) -> Fault:
    """A response with this body, which is made when it is sent."""

    def fault(exchange: Exchange) -> None:
        content = make()
        with suppress(OSError):
            exchange.send(b"\r\n".join([OK + b"Content-Length: %d" % len(content), *headers, b"", content]))
        exchange.close()

    return fault


ENDLESS = {
    "body": endless(OK + b"\r\n", b"a"),
    "chunked body": endless(CHUNKED, b"10000\r\n" + b"a" * 2**16 + b"\r\n"),
    "error": endless(b"HTTP/1.1 403 Forbidden\r\n\r\n", b"a"),
    "headers": endless(OK, b"X: y\r\n"),
    "header line": endless(OK + b"X: ", b"y"),
    "status line": endless(b"HTTP/1.1 200 ", b"y"),
    "100": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "103": endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "chunk size line": endless(CHUNKED, b"0"),
    "chunk extension": endless(CHUNKED + b"1;", b"x"),
    "trailer": endless(CHUNKED + b"0\r\n", b"X: y\r\n"),
    "gzip of gzip": body(lambda: gzip.compress(gzip.compress(bytes(2**28))), b"Content-Encoding: gzip, gzip"),
}
DOCUMENTS = {
    "nested tags": body(lambda: XML + b"<a>" * 5_000_000),
    "unclosed tags": body(lambda: XML + b"<Size>" * 100_000),
    "siblings": body(lambda: XML + b"<a/>" * 4_000_000),
    "names": body(lambda: XML + b"".join(b"<a%d/>" % number for number in range(1_000_000))),
    "keys": body(lambda: XML + b"<Contents><Key>run/pub/a</Key></Contents>" * 350_000 + b"</ListBucketResult>"),
    "tag": body(lambda: XML + b"<" + b"a" * 2**24),
    "attributes": body(lambda: XML + b"<a " + b"".join(b"b%d='' " % number for number in range(1_000_000))),
    "text": body(lambda: XML + b"<Prefix>" + b"a&amp;" * 2_500_000),
}


@pytest.fixture
def wire() -> Iterator[FaultProxy]:
    with FaultProxy(NOWHERE) as wire:
        yield wire


def run(program: str, *arguments: str) -> tuple[dict[str, str], int]:
    command = [sys.executable, "-c", program + RUN, *arguments]
    done = subprocess.run(command, capture_output=True, check=True, timeout=100)
    assert done.stderr == b""
    results, memory = json.loads(done.stdout)
    return results, memory


@pytest.fixture
def bundle(tmp_path: Path, authority: CertificateAuthority) -> str:
    """A bundle of one certificate: loading the system's takes memory and time."""
    return str(authority.write(tmp_path))


# Handled like another of them.
ALIKE = {"103", "status line", "chunk extension", "siblings", "attributes"}


@pytest.mark.parametrize("fault", variants({**ENDLESS, **DOCUMENTS}, exhaustive=ALIKE))
def test_no_response_of_a_store_costs_much(fault: Fault, wire: FaultProxy, bundle: str) -> None:
    """s3.15"""
    for method in ("GET", "PUT", "POST", "HEAD"):
        wire.spoil_all(method, fault)
    # These two have no bound but the deadline; they take no memory.
    has_bound = fault not in (ENDLESS["100"], ENDLESS["trailer"])
    results, memory = run(S3, wire.endpoint, bundle, "10" if has_bound else "0.5")
    assert memory < MAX_MEMORY
    assert results["list"] not in {"ok", "TypeError"}
    if has_bound:
        assert "still running" not in results.values()


@pytest.mark.parametrize("fault", ENDLESS.values(), ids=ENDLESS)
def test_no_response_of_vault_costs_much(fault: Fault, wire: FaultProxy, bundle: str, tmp_path: Path) -> None:
    """vault.9"""
    approle = write_private_directory(tmp_path / "approle", {"role_id": "canary", "secret_id": "canary"})
    wire.spoil_all("POST", fault)
    results, memory = run(VAULT, wire.endpoint, str(approle), bundle, "3")
    assert memory < MAX_MEMORY
    assert results["read"] in {"CredentialsError", "SourceUnavailable"}
    assert len(wire.asked) == 1
