"""The store behind a proxy and behind TLS: every request takes the way it was given, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from publish.adapters.s3 import ConnectionSettings, S3Store
from publish.domain.errors import NotApplied, OutcomeUnknown, PermanentFault, StoreFault, Unreachable
from publish.domain.ports import Namespace
from tests.support.ca import CertificateAuthority, MakeTlsTerminator
from tests.support.fault_proxy import FaultProxy
from tests.support.proxies import TinyProxy
from tests.support.retrying import retrying
from tests.support.s3_jobs import s3_job
from tests.support.s3_roots import BUNDLE, Place, make_place, wire_to
from tests.support.servers import KeyedServer, free_ports
from tests.support.wire_faults import lost_request

NAME = b"00000000000000000001-00000000000000000002-MFRGG"


@pytest.fixture
def place(seaweedfs: KeyedServer) -> Place:
    return make_place(seaweedfs)


@pytest.fixture
def wire(seaweedfs: KeyedServer) -> Iterator[FaultProxy]:
    with wire_to(seaweedfs) as wire:
        yield wire


@pytest.fixture
def trust(authority: CertificateAuthority, tmp_path: Path) -> str:
    """A bundle in which the authority is the only root."""
    return str(authority.write(tmp_path))


@pytest.fixture
def tls(tls: MakeTlsTerminator) -> Callable[..., str]:
    """As the shared fixture, for the address alone."""
    return lambda *args, **kwargs: tls(*args, **kwargs).address


def works(store: S3Store) -> None:
    """Requests of each kind, and what they must come to. A proxy may hang up between any two."""
    reached = retrying(store)
    reached.create(Namespace.PUB, NAME)
    assert reached.list_entries(Namespace.PUB, None) == ([NAME], None)
    for path in (b"s/x", b"s/y"):
        reached.retry("put", partial(store.put, path, b"bytes", only_if_new=False))
    assert reached.size(b"s/x") == 5
    assert reached.read(b"s/x", 10) == b"bytes"
    assert reached.remove_tree(b"s", ()).found
    reached.retry("delete", lambda: store.delete(b"pub/" + NAME))


def through(wire: FaultProxy) -> bool:
    """Whether all that arrived came by the proxy, which says so (RFC 9110 section 7.6.3)."""
    return bool(wire.asked) and all("tinyproxy" in str(asked.header("via")) for asked in wire.asked)


def test_a_proxy_carries_every_request_of_the_program(
    tinyproxy: TinyProxy, seaweedfs: KeyedServer, tmp_path: Path
) -> None:
    """proxy.3"""
    with s3_job(seaweedfs, tmp_path) as job:
        for step in (1, 2):
            job.save(step, "weights")
            assert job.publish(step, "-proxy", tinyproxy.url).status == 0
        assert job.run("resolve", "-proxy", tinyproxy.url).out == f"{job.url(2)}\n".encode()
        assert job.run("resolve", "-probe", "-proxy", tinyproxy.url).status == 0
        assert job.run("prune", "-keep", "1", "-proxy", tinyproxy.url).status == 0
        assert job.published() == [2]
        assert through(job.wire)
        job.wire.asked.clear()
        assert job.run("resolve").status == 0
        assert not through(job.wire)


def test_a_tls_store_is_reached_through_a_proxys_tunnel(
    tinyproxy: TinyProxy, place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str
) -> None:
    """proxy.3"""
    endpoint = tls(wire.endpoint)
    works(place.store(endpoint, settings=ConnectionSettings(tinyproxy.url, trust, 20.0)))
    assert f"CONNECT {endpoint.removeprefix('https://')}" in tinyproxy.asked()


@pytest.mark.parametrize("target", ["http", "https"])
def test_a_proxy_behind_tls_carries_every_request(
    target: str, tinyproxy: TinyProxy, place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str
) -> None:
    """proxy.2, proxy.3"""
    endpoint = wire.endpoint if target == "http" else tls(wire.endpoint)
    works(place.store(endpoint, settings=ConnectionSettings(tls(tinyproxy.url), trust, 20.0)))
    assert len(wire.asked) > 5
    if target == "http":
        assert through(wire)
    else:
        assert f"CONNECT {endpoint.removeprefix('https://')}" in tinyproxy.asked()


@pytest.mark.parametrize("target", ["http", "https"])
@pytest.mark.parametrize("flaw", ["untrusted", "for another host", "expired"])
def test_a_proxy_whose_certificate_does_not_verify_is_not_used(
    target: str, flaw: str, tinyproxy: TinyProxy, place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str
) -> None:
    """proxy.2"""
    endpoint = wire.endpoint if target == "http" else tls(wire.endpoint)
    host = "elsewhere.example" if flaw == "for another host" else "localhost"
    address = tls(tinyproxy.url, host, expired=flaw == "expired")
    line = ConnectionSettings(address, BUNDLE if flaw == "untrusted" else trust, 5.0)
    with pytest.raises(PermanentFault, match="certificate"):
        place.store(endpoint, settings=line).list_entries(Namespace.PUB, None)
    assert wire.asked == []


@pytest.mark.tinyproxy
def test_a_proxy_that_refuses_the_tunnel_is_final(
    place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str
) -> None:
    refusing = TinyProxy("ConnectPort 1")
    try:
        with pytest.raises(PermanentFault, match="the proxy refuses"):
            place.store(tls(wire.endpoint), settings=ConnectionSettings(refusing.url, trust, 5.0)).list_entries(
                Namespace.PUB, None
            )
    finally:
        refusing.stop()
    assert wire.asked == []


@pytest.mark.parametrize("target", ["http", "https"])
def test_an_unreachable_proxy_is_not_bypassed(
    target: str, place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str
) -> None:
    """proxy.3, s3.8"""
    endpoint = wire.endpoint if target == "http" else tls(wire.endpoint)
    (port,) = free_ports(1)
    with pytest.raises(Unreachable):
        place.store(endpoint, settings=ConnectionSettings(f"http://127.0.0.1:{port}", trust, 5.0)).list_entries(
            Namespace.PUB, None
        )
    assert wire.asked == []


@pytest.mark.parametrize("proxy_scheme", ["http", "https"])
@pytest.mark.parametrize("target", ["http", "https"])
def test_a_reply_that_is_lost_behind_a_proxy_leaves_a_put_unknown(
    target: str, proxy_scheme: str, place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str
) -> None:
    """s3.9: what a proxy had may have happened."""
    with FaultProxy(wire.endpoint) as hanging_up:
        # As a proxy it is asked by whole URLs, or for a tunnel, and hangs up either way.
        hanging_up.spoil_all("*", lost_request)
        address = hanging_up.endpoint if proxy_scheme == "http" else tls(hanging_up.endpoint)
        endpoint = wire.endpoint if target == "http" else tls(wire.endpoint)
        store = place.store(endpoint, settings=ConnectionSettings(address, trust, 5.0))
        with pytest.raises(OutcomeUnknown):
            store.create(Namespace.PUB, NAME)


@pytest.mark.parametrize("target", ["http", "https"])
def test_a_store_that_the_proxy_cannot_reach_is_retried(
    target: str, tinyproxy: TinyProxy, place: Place, trust: str
) -> None:
    """s3.8"""
    (port,) = free_ports(1)
    with pytest.raises(NotApplied):
        place.store(
            f"{target}://localhost:{port}", settings=ConnectionSettings(tinyproxy.url, trust, 5.0)
        ).list_entries(Namespace.PUB, None)


def test_a_store_with_a_trusted_private_ca_works(
    place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str
) -> None:
    """s3.14"""
    works(place.store(tls(wire.endpoint), settings=ConnectionSettings(None, trust, 20.0)))


@pytest.mark.parametrize("flaw", ["untrusted", "for another host", "expired"])
def test_a_store_whose_certificate_does_not_verify_fails_at_once(
    flaw: str, place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str
) -> None:
    """s3.14: before a secret or a request goes out."""
    host = "elsewhere.example" if flaw == "for another host" else "localhost"
    endpoint = tls(wire.endpoint, host, expired=flaw == "expired")
    store = place.store(endpoint, settings=ConnectionSettings(None, BUNDLE if flaw == "untrusted" else trust, 5.0))
    for call in (lambda: store.list_entries(Namespace.PUB, None), lambda: store.create(Namespace.PUB, NAME)):
        with pytest.raises(PermanentFault, match="trusts the CA of its certificate"):
            call()
    assert wire.asked == []


def test_tls_to_a_plain_store_fails_at_once(place: Place, wire: FaultProxy, trust: str) -> None:
    store = place.store(wire.endpoint.replace("http:", "https:"), settings=ConnectionSettings(None, trust, 5.0))
    with pytest.raises(PermanentFault, match="https"):
        store.list_entries(Namespace.PUB, None)


def test_plain_http_to_a_tls_store_fails(place: Place, wire: FaultProxy, tls: Callable[..., str], trust: str) -> None:
    store = place.store(tls(wire.endpoint).replace("https:", "http:"), settings=ConnectionSettings(None, trust, 5.0))
    with pytest.raises(StoreFault):
        store.list_entries(Namespace.PUB, None)
    assert wire.asked == []
