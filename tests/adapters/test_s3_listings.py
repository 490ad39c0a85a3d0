"""A listing is whole, or it is a fault."""

from __future__ import annotations

import pytest

from publish.adapters.s3 import S3Store
from publish.domain.errors import NotApplied, OutcomeUnknown, PermanentFault
from tests.support.fault_proxy import Fault, FaultProxy, Reply
from tests.support.moto_server import Moto
from tests.support.s3_faults import every_call, filled_place, read, translate
from tests.support.s3_roots import Place, make_place
from tests.support.wire_faults import answers, cut_in_headers, nothing_but_200, says, truncated, truncated_unnoticed

SECRET = 'canary+secret/of&40=characters<and>"more"'


@pytest.fixture(scope="module")
def place(moto: Moto) -> Place:
    return filled_place(moto)


def listing(content: str, truncated: str = "false", root: str = "ListBucketResult") -> Fault:
    return answers(f"<{root}><IsTruncated>{truncated}</IsTruncated>{content}</{root}>")


@pytest.mark.parametrize(
    "response",
    [
        listing("<NextContinuationToken>x</NextContinuationToken>", "True"),
        listing("<NextContinuationToken>x</NextContinuationToken>", ""),
        listing("", "1"),
        listing("", "true"),
        listing("<KeyCount>7</KeyCount>"),
        listing("<KeyCount>abc</KeyCount>"),
        listing("<Prefix>other/</Prefix>"),
        listing("<a>"),
        listing("<a></b>"),
        listing("", root="x"),
        listing("<Contents><Size>1</Size></Contents>"),
        listing("<CommonPrefixes/>"),
        listing("<a>" * 17 + "</a>" * 17),
        listing("<a/>" * 100_000),
        listing("<a b='" + "c" * 200_000 + "'/>"),
        listing(f"<Prefix>{'a' * 100_000}</Prefix>"),
        answers("<!DOCTYPE a [<!ENTITY b 'c'>]><ListBucketResult>&b;</ListBucketResult>"),
        answers("hello"),
        answers("<html>"),
    ],
)
def test_a_contradictory_listing_is_never_an_empty_log(response: Fault, store: S3Store, wire: FaultProxy) -> None:
    """resolve.3, s3.6: it is not sent again."""
    assert type(translate(wire, response, read(store))) is PermanentFault


@pytest.mark.parametrize("response", [answers(""), answers("<ListBucketResult>"), says(206), says(204)])
def test_an_incomplete_listing_is_never_an_empty_log(response: Fault, store: S3Store, wire: FaultProxy) -> None:
    """resolve.3, s3.8"""
    assert type(translate(wire, response, read(store))) is NotApplied


@pytest.mark.parametrize("headers", [(("Last-Modified", "Wed, 02 Dec 2026 00:00:00 GMT"),), (("ETag", '"x"'),)])
def test_an_object_without_an_etag_is_an_object(
    headers: tuple[tuple[str, str], ...], store: S3Store, wire: FaultProxy
) -> None:
    """s3.5: a file that others wrote beside versitygw has none."""
    for method in ("GET", "HEAD"):
        wire.spoil_all(method, lambda exchange: exchange.answer(Reply(200, list(headers), b"bytes")))
    assert store.read(b"s/a", 10) == b"bytes"
    assert store.size(b"s/a") == 5


EMPTY_PAGE = listing("<NextContinuationToken>t</NextContinuationToken>", "true")


def test_a_page_without_keys_does_not_end_a_listing(moto: Moto) -> None:
    """prune.3, publish.2: the API lets a store send one."""
    place = make_place(moto)
    place.fill("s/a", "s/b")
    page = listing(f"<Contents><Key>{place.root.prefix}/s/a</Key></Contents>")
    with FaultProxy(moto.endpoint) as wire:
        store = place.store(wire.endpoint)
        wire.spoil("GET", EMPTY_PAGE, page)
        assert store.save_exists(b"s")
        wire.spoil("GET", EMPTY_PAGE, page)
        assert store.remove_tree(b"s", ()).found
    assert place.paths() == ["s/b"]


@pytest.mark.parametrize("size", ["", "<Size/>", "<Size>x</Size>", "<Size>-1</Size>", f"<Size>{'9' * 5000}</Size>"])
def test_a_listed_object_without_a_valid_size_is_refused(
    size: str, place: Place, store: S3Store, wire: FaultProxy
) -> None:
    """s3.6"""
    key = f"{place.root.prefix}/s/a"
    fault = translate(
        wire, listing(f"<Contents><Key>{key}</Key>{size}</Contents>"), lambda: store.list_files(b"s", None)
    )
    assert type(fault) is PermanentFault


def test_a_token_that_comes_twice_in_a_row_ends_a_listing(store: S3Store, wire: FaultProxy) -> None:
    """s3.2, s3.6"""
    page = listing("<NextContinuationToken>t</NextContinuationToken>", "true")
    wire.spoil_all("GET", page)
    with pytest.raises(PermanentFault, match="the same continuation token twice in a row: t"):
        store.save_exists(b"s")
    assert len(wire.asked) == 2


@pytest.mark.parametrize("fault", [truncated, truncated_unnoticed])
def test_a_truncated_listing_is_never_a_listing(fault: Fault, store: S3Store, place: Place, wire: FaultProxy) -> None:
    """s3.8, resolve.3"""
    found = translate(wire, fault, read(store))
    assert type(found) is NotApplied
    assert fault is not truncated or "received" in str(found)


@pytest.mark.parametrize("fault", [nothing_but_200, cut_in_headers])
def test_a_response_without_an_element_that_s3_always_sends_is_refused(
    fault: Fault, store: S3Store, wire: FaultProxy
) -> None:
    """The end of a connection in the middle of an answer's headers looks just so."""
    for writes, call in every_call(store):
        assert type(translate(wire, fault, call)) is (OutcomeUnknown if writes else NotApplied)
