"""What a store's refusals and a line's failures mean to the domain, one table, met on the wire."""

from __future__ import annotations

import gc
import secrets
import traceback
from collections.abc import Callable

import pytest

from publish.adapters.s3 import ConnectionSettings, S3Store
from publish.domain.errors import (
    AlreadyExists,
    Conflict,
    CredentialsError,
    CredentialsRejected,
    NotApplied,
    OutcomeUnknown,
    PermanentFault,
    StoreFault,
    Unreachable,
)
from publish.domain.ports import Namespace
from publish.domain.root import S3Root
from tests.support.fault_proxy import (
    Exchange,
    Fault,
    Reply,
    Wire,
    answers,
    cut_in_headers,
    drips,
    lost_reply,
    lost_request,
    nothing_but_200,
    reset_in_headers,
    says,
    silence,
    truncated,
    truncated_unnoticed,
    web_page,
)
from tests.support.moto_server import Moto
from tests.support.s3_roots import BUNDLE, Place, make_place
from tests.support.servers import Key, credentials, free_ports

NAME = b"00000000000000000001-00000000000000000002-MFRGG"
SECRET = 'canary+secret/of&40=characters<and>"more"'


@pytest.fixture(scope="module")
def place(moto: Moto) -> Place:
    place = make_place(moto)
    place.fill("s/a", "s/b", "s/trainer_state.json", body=b"some bytes to cut in two")
    return place


def translate(wire: Wire, fault: Fault, call: Callable[[], object]) -> StoreFault:
    """What the store raises when every request meets `fault`."""
    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        wire.spoil_all(method, fault)
    with pytest.raises(StoreFault) as raised:
        call()
    return raised.value


def write(store: S3Store) -> Callable[[], object]:
    """A put of a name that nobody has put."""
    return lambda: store.create(Namespace.PUB, secrets.token_hex(8).encode())


def read(store: S3Store) -> Callable[[], object]:
    return lambda: store.list_entries(Namespace.PUB, None)


TABLE = [
    (412, "PreconditionFailed", AlreadyExists),
    (412, "", AlreadyExists),
    (409, "ConditionalRequestConflict", Conflict),
    (409, "OperationAborted", Conflict),
    (409, "", Conflict),
    (503, "SlowDown", NotApplied),
    (503, "ServiceUnavailable", NotApplied),
    (429, "TooManyRequests", NotApplied),
    (429, "", NotApplied),
    (503, "", OutcomeUnknown),
    (500, "InternalError", OutcomeUnknown),
    (500, "", OutcomeUnknown),
    (502, "", OutcomeUnknown),
    (504, "", OutcomeUnknown),
    (599, "NobodyListedThis", OutcomeUnknown),
    (400, "RequestTimeout", OutcomeUnknown),
    (200, "InternalError", OutcomeUnknown),
    (403, "InvalidAccessKeyId", CredentialsRejected),
    (400, "ExpiredToken", CredentialsRejected),
    (400, "InvalidToken", CredentialsRejected),
    (403, "SignatureDoesNotMatch", CredentialsRejected),
    (403, "AccessDenied", PermanentFault),
    (403, "RequestTimeTooSkewed", PermanentFault),
    (403, "", PermanentFault),
    (404, "NoSuchBucket", PermanentFault),
    (400, "NobodyListedThis", PermanentFault),
    (501, "NotImplemented", PermanentFault),
    (501, "", PermanentFault),
    (400, "AuthorizationHeaderMalformed", PermanentFault),
    (301, "PermanentRedirect", PermanentFault),
]


@pytest.mark.parametrize(("status", "code", "kind"), TABLE)
def test_the_response_to_a_put_decides_whether_it_was_applied(
    status: int, code: str, kind: type[StoreFault], store: S3Store, wire: Wire
) -> None:
    """s3.8, s3.9, s3.10, s3.12"""
    assert type(translate(wire, says(status, code), write(store))) is kind
    assert len(wire.asked) == 1


@pytest.mark.parametrize(("status", "code", "kind"), [row for row in TABLE if row[:2] != (200, "InternalError")])
def test_a_failed_read_is_never_applied(
    status: int, code: str, kind: type[StoreFault], store: S3Store, wire: Wire
) -> None:
    """s3.8: what is a perhaps of a write is certain of a read."""
    # Nobody races a read: a word for a lost race says that the store is busy, a bare status that it will not.
    busy = NotApplied if code else PermanentFault
    expected = {OutcomeUnknown: NotApplied, Conflict: busy, AlreadyExists: PermanentFault}.get(kind, kind)
    assert type(translate(wire, says(status, code), read(store))) is expected
    assert len(wire.asked) == 1


@pytest.mark.parametrize("fault", [lost_request, lost_reply, reset_in_headers, cut_in_headers])
def test_a_broken_connection_leaves_a_put_unknown_and_a_read_not_applied(
    fault: Fault, store: S3Store, wire: Wire
) -> None:
    """s3.8"""
    assert type(translate(wire, fault, write(store))) is OutcomeUnknown
    assert type(translate(wire, fault, read(store))) is NotApplied
    assert len(wire.asked) == 2


@pytest.mark.parametrize("fault", [silence, drips])
def test_a_read_timeout_leaves_a_put_unknown(fault: Fault, place: Place, wire: Wire) -> None:
    """s3.11: one attempt has its own end; a drip is for the verb's deadline to stop."""
    store = place.store(wire.endpoint, settings=ConnectionSettings(None, BUNDLE, 0.5))
    assert type(translate(wire, fault, write(store))) is OutcomeUnknown
    assert type(translate(wire, fault, read(store))) is NotApplied


def test_a_store_that_refuses_connections_is_unreachable(place: Place) -> None:
    """s3.8"""
    (port,) = free_ports(1)
    for call in (write, read):
        with pytest.raises(Unreachable):
            call(place.store(f"http://127.0.0.1:{port}"))()
        with pytest.raises(Unreachable):
            call(place.store("http://no-such-host.invalid"))()


@pytest.mark.parametrize("fault", [truncated, truncated_unnoticed])
def test_a_truncated_listing_is_never_a_listing(fault: Fault, store: S3Store, place: Place, wire: Wire) -> None:
    """s3.8, resolve.3"""
    found = translate(wire, fault, read(store))
    assert type(found) is NotApplied
    assert fault is not truncated or "received" in str(found)


def test_a_truncated_object_is_never_an_object(store: S3Store, wire: Wire) -> None:
    """watch.4"""
    assert type(translate(wire, truncated, lambda: store.read(b"s/trainer_state.json", 2**20))) is NotApplied


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


def test_a_web_page_is_not_a_success_and_the_message_has_a_hint(store: S3Store, wire: Wire) -> None:
    """Neither an empty log nor a made entry nor a removed one nor a save's file."""
    for _, call in every_call(store):
        fault = translate(wire, web_page, call)
        assert type(fault) is PermanentFault
        assert "check the endpoint" in str(fault)


@pytest.mark.parametrize("fault", [nothing_but_200, cut_in_headers])
def test_a_response_without_an_element_that_s3_always_sends_is_refused(
    fault: Fault, store: S3Store, wire: Wire
) -> None:
    """The end of a connection in the middle of an answer's headers looks just so."""
    for writes, call in every_call(store):
        assert type(translate(wire, fault, call)) is (OutcomeUnknown if writes else NotApplied)


# urllib3 stumbles over a 303 and leaves its socket to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("code", ["", "TemporaryRedirect"])
def test_a_redirect_is_not_followed(status: int, code: str, store: S3Store, wire: Wire) -> None:
    """s3.8"""
    with Wire(wire.endpoint) as elsewhere:
        fault = says(status, code, headers=(("Location", elsewhere.endpoint + "/x"),))
        for call in (write(store), read(store), lambda: store.size(b"s/a")):
            wire.asked.clear()
            assert "check endpoint and region" in str(translate(wire, fault, call))
            assert len(wire.asked) <= 1
        assert elsewhere.asked == []
    gc.collect()


def test_a_region_in_a_redirect_is_not_used(store: S3Store, wire: Wire) -> None:
    """s3.8"""
    fault = says(301, "PermanentRedirect", headers=(("x-amz-bucket-region", "eu-central-1"),))
    translate(wire, fault, read(store))
    translate(wire, fault, read(store))
    assert len(wire.asked) == 2
    assert all("/us-east-1/" in str(asked.header("authorization")) for asked in wire.asked)


def test_a_refused_head_gets_its_code_from_a_get(store: S3Store, wire: Wire) -> None:
    """s3.12"""
    wire.spoil_all("HEAD", says(400))
    wire.spoil_all("GET", says(400, "ExpiredToken"))
    with pytest.raises(CredentialsRejected) as refused:
        store.size(b"s/a")
    assert refused.value.code == "ExpiredToken"
    assert [asked.method for asked in wire.asked] == ["HEAD", "GET"]


def test_a_missing_object_is_none_and_not_a_fault(store: S3Store) -> None:
    assert store.size(b"nowhere") is None
    assert store.read(b"nowhere", 10) is None


def test_a_fault_of_one_key_in_a_batch_belongs_to_that_key(store: S3Store, place: Place, wire: Wire) -> None:
    """prune.5"""
    body = f"<Error><Key>{place.root.prefix}/pub/b</Key><Code>AccessDenied</Code><Message>locked</Message></Error>"
    wire.spoil("POST", answers(f"<DeleteResult>{body}</DeleteResult>"))
    stuck = store.remove_entries(Namespace.PUB, [b"a", b"b", b"c"])
    assert list(stuck) == [b"b"]
    assert type(stuck[b"b"]) is PermanentFault
    assert "AccessDenied: locked" in str(stuck[b"b"])


@pytest.mark.parametrize(("code", "kind"), [("SlowDown", NotApplied), ("InternalError", OutcomeUnknown)])
def test_a_passing_fault_of_one_key_retries_the_whole_batch(
    code: str, kind: type[StoreFault], store: S3Store, place: Place, wire: Wire
) -> None:
    """s3.8"""
    body = f"<Error><Key>{place.root.prefix}/pub/b</Key><Code>{code}</Code></Error>"
    wire.spoil("POST", answers(f"<DeleteResult>{body}</DeleteResult>"))
    with pytest.raises(StoreFault) as raised:
        store.remove_entries(Namespace.PUB, [b"a", b"b"])
    assert type(raised.value) is kind


def test_if_one_object_cannot_be_removed_the_others_are(moto: Moto, wire: Wire) -> None:
    """prune.5"""
    place = make_place(moto)
    place.fill("s/a", "s/b", "s/c")
    wire.spoil("POST", says(405, "MethodNotAllowed"))
    wire.spoil_all("DELETE", says(403, "AccessDenied"), part="/s/b")
    with pytest.raises(PermanentFault, match="/s/b: AccessDenied"):
        place.store(wire.endpoint).remove_tree(b"s", ())
    assert place.paths() == ["s/b"]


def test_clock_skew_shows_the_stores_code_and_a_hint(store: S3Store, wire: Wire) -> None:
    text = str(translate(wire, says(403, "RequestTimeTooSkewed"), read(store)))
    assert "RequestTimeTooSkewed" in text
    assert "clock" in text


def test_the_message_has_the_request_and_the_stores_message_on_one_line(
    store: S3Store, place: Place, wire: Wire
) -> None:
    """s3.13"""
    text = str(translate(wire, says(403, "AccessDenied", message="Not\n for  you."), read(store)))
    assert text == f"LIST {place.url}/pub/: AccessDenied: Not for you"


@pytest.mark.parametrize("spelled", [SECRET, "<![CDATA[" + SECRET + "]]>"], ids=["plain", "cdata"])
def test_a_secret_that_the_store_echoes_is_in_no_message_and_no_traceback(
    spelled: str, place: Place, wire: Wire
) -> None:
    """cli.9"""
    if not spelled.startswith("<!"):
        spelled = spelled.replace("&", "&amp;").replace("<", "&lt;")
    store = place.store(wire.endpoint, key=Key("AKIA", SECRET))
    for call in (write(store), read(store)):
        fault = translate(wire, says(403, "SignatureDoesNotMatch", message=f"you signed with {spelled} so"), call)
        told = "".join(traceback.format_exception(fault))
        assert "you signed with … so" in str(fault)
        assert SECRET not in told
        assert spelled not in told


def test_a_key_that_is_not_utf_8_is_refused_before_any_request(store: S3Store, wire: Wire) -> None:
    """layout.3"""
    for call in (
        lambda: store.size(b"\xff"),
        lambda: store.remove_tree(b"\xff", ()),
        lambda: store.save_exists(b"\xff"),
    ):
        with pytest.raises(PermanentFault, match="UTF-8"):
            call()
    assert wire.asked == []


def test_an_invalid_region_is_a_credentials_error(moto: Moto) -> None:
    """creds.3"""
    wrong = credentials(moto)._replace(region="no/region")
    with pytest.raises(CredentialsError, match="invalid region"):
        S3Store(S3Root("bucket", "run"), wrong, ConnectionSettings(None, BUNDLE, 5.0)).list_entries(Namespace.PUB, None)


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "under_score", "-dash.example"])
def test_an_invalid_endpoint_host_is_a_credentials_error(host: str, moto: Moto) -> None:
    """creds.3"""
    wrong = credentials(moto)._replace(endpoint=f"http://{host}")
    with pytest.raises(CredentialsError, match=f"invalid endpoint host: http://{host}"):
        S3Store(S3Root("bucket", "run"), wrong, ConnectionSettings(None, BUNDLE, 5.0))


def test_a_failed_connection_is_reported_with_peer_and_reason(place: Place) -> None:
    """s3.13"""
    (port,) = free_ports(1)
    with pytest.raises(Unreachable) as raised:
        place.store(f"http://127.0.0.1:{port}").list_entries(Namespace.PUB, None)
    assert str(raised.value) == (f"LIST {place.url}/pub/: no connection to http://127.0.0.1:{port}: Connection refused")


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
def test_a_contradictory_listing_is_never_an_empty_log(response: Fault, store: S3Store, wire: Wire) -> None:
    """resolve.3, s3.6: it is not sent again."""
    assert type(translate(wire, response, read(store))) is PermanentFault


@pytest.mark.parametrize("response", [answers(""), answers("<ListBucketResult>"), says(206), says(204)])
def test_an_incomplete_listing_is_never_an_empty_log(response: Fault, store: S3Store, wire: Wire) -> None:
    """resolve.3, s3.8"""
    assert type(translate(wire, response, read(store))) is NotApplied


@pytest.mark.parametrize("headers", [(("Last-Modified", "Wed, 02 Dec 2026 00:00:00 GMT"),), (("ETag", '"x"'),)])
def test_an_object_without_an_etag_is_an_object(
    headers: tuple[tuple[str, str], ...], store: S3Store, wire: Wire
) -> None:
    """s3.5: a file that others wrote beside versitygw has none."""
    for method in ("GET", "HEAD"):
        wire.spoil_all(method, lambda exchange: exchange.answer(Reply(200, list(headers), b"bytes")))
    assert store.read(b"s/a", 10) == b"bytes"
    assert store.size(b"s/a") == 5


def tagged_page(exchange: Exchange) -> None:
    exchange.answer(Reply(200, [("Content-Type", "text/html"), ("ETag", '"x"')], b"<html>Log in, please</html>"))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (says(202, headers=(("ETag", '"x"'),)), OutcomeUnknown),
        (says(200, headers=(("ETag", '""'),)), OutcomeUnknown),
        (tagged_page, PermanentFault),
    ],
)
def test_an_unexpected_success_of_a_put_is_not_a_publication(
    answer: Fault, kind: type[StoreFault], store: S3Store, wire: Wire
) -> None:
    """layout.7, publish.4"""
    assert type(translate(wire, answer, write(store))) is kind


EMPTY_PAGE = listing("<NextContinuationToken>t</NextContinuationToken>", "true")


def test_a_page_without_keys_does_not_end_a_listing(moto: Moto) -> None:
    """prune.3, publish.2: the API lets a store send one."""
    place = make_place(moto)
    place.fill("s/a", "s/b")
    page = listing(f"<Contents><Key>{place.root.prefix}/s/a</Key></Contents>")
    with Wire(moto.endpoint) as wire:
        store = place.store(wire.endpoint)
        wire.spoil("GET", EMPTY_PAGE, page)
        assert store.save_exists(b"s")
        wire.spoil("GET", EMPTY_PAGE, page)
        assert store.remove_tree(b"s", ()).found
    assert place.paths() == ["s/b"]


@pytest.mark.parametrize("answer", [says(409, "ObjectLocked"), says(412, "ObjectHasLegalHold"), says(409), says(412)])
def test_a_locked_object_is_a_fault_of_its_save(answer: Fault, store: S3Store, wire: Wire) -> None:
    """prune.5: Conflict and AlreadyExists are for puts that somebody else may win."""
    wire.spoil_all("DELETE", answer)
    wire.spoil_all("POST", answer)
    with pytest.raises(PermanentFault):
        store.remove_tree(b"s", (b"trainer_state.json",))


@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict"])
def test_a_locked_key_in_a_batch_is_a_fault_of_that_key(code: str, store: S3Store, place: Place, wire: Wire) -> None:
    """prune.5"""
    body = f"<Error><Key>{place.root.prefix}/pub/b</Key><Code>{code}</Code></Error>"
    wire.spoil("POST", answers(f"<DeleteResult>{body}</DeleteResult>"))
    assert list(store.remove_entries(Namespace.PUB, [b"a", b"b"])) == [b"b"]


def test_an_error_without_a_code_shows_its_status_and_a_hint(store: S3Store, wire: Wire) -> None:
    """cli.5: a proxy's word, as a rule."""
    text = str(translate(wire, says(418), read(store)))
    assert "HTTP status 418" in text
    assert "check the endpoint and the proxy" in text


def test_through_a_proxy_no_key_becomes_another(moto: Moto) -> None:
    """prune.3, proxy.3, s3.4: urllib3 takes dot segments out of the URL that a proxy is sent."""
    place = make_place(moto)
    place.fill("keep/z", "s/a", "s/../keep/z", "s/./dot", "s/..")
    before = place.paths()
    with Wire(moto.endpoint) as wire:
        store = place.store(moto.endpoint, settings=ConnectionSettings(wire.endpoint, BUNDLE, 20.0))
        wire.spoil_all("POST", says(501, "NotImplemented"))
        with pytest.raises(PermanentFault, match=r"refusing to delete a key with"):
            store.remove_tree(b"s", ())
        assert all("/keep/" not in asked.target for asked in wire.asked if asked.method == "DELETE")
    assert sorted(set(before) - set(place.paths())) == ["s/a"]
    assert place.store().remove_tree(b"s", ()).found
    assert place.paths() == ["keep/z"]


def test_a_deletion_that_did_not_happen_is_a_fault(place: Place, store: S3Store, wire: Wire) -> None:
    """s3.4: a save counts as removed when a listing of it is empty."""
    place.fill("s/a", "s/b")
    wire.spoil_all("POST", answers("<DeleteResult/>"))
    with pytest.raises(PermanentFault, match="still listed after the store deleted it"):
        store.remove_tree(b"s", ())


def test_a_key_that_xml_cannot_represent_does_not_fail_its_batch(moto: Moto) -> None:
    """prune.3: it goes alone, and the others together."""
    place = make_place(moto)
    place.fill("s/a", "s/b", "s/\x01", "s/\ufffe")
    with Wire(moto.endpoint) as wire:
        assert place.store(wire.endpoint).remove_tree(b"s", ()).found
        (batch,) = (asked for asked in wire.asked if asked.method == "POST")
        assert b"s/a" in batch.body
        assert b"\x01" not in batch.body
    assert place.paths() == []


@pytest.mark.parametrize("message", ["<Message></Message>", "<Message/>", ""])
def test_an_error_without_a_message_shows_its_code_alone(message: str, store: S3Store, wire: Wire) -> None:
    """probe.5"""
    error = Reply(404, [], f"<Error><Code>NoSuchBucket</Code>{message}</Error>".encode())
    said = str(translate(wire, lambda exchange: exchange.answer(error), read(store)))
    assert said.endswith("/pub/: NoSuchBucket (check the bucket and the endpoint)")


def test_the_body_of_an_error_that_is_too_large_is_ignored(store: S3Store, wire: Wire) -> None:
    """s3.15, s3.8: its status says enough."""
    page = Reply(503, [("Content-Type", "text/html")], b"<html>" + b"x" * 2**17)
    fault = translate(wire, lambda exchange: exchange.answer(page), read(store))
    assert type(fault) is NotApplied
    assert "HTTP status 503" in str(fault)


@pytest.mark.parametrize("size", ["", "<Size/>", "<Size>x</Size>", "<Size>-1</Size>", f"<Size>{'9' * 5000}</Size>"])
def test_a_listed_object_without_a_valid_size_is_refused(size: str, place: Place, store: S3Store, wire: Wire) -> None:
    """s3.6"""
    key = f"{place.root.prefix}/s/a"
    fault = translate(
        wire, listing(f"<Contents><Key>{key}</Key>{size}</Contents>"), lambda: store.list_files(b"s", None)
    )
    assert type(fault) is PermanentFault


def test_a_304_to_a_conditional_put_is_explained(store: S3Store, wire: Wire) -> None:
    """s3.13: an old MinIO's answer to a taken name, not a redirect."""
    wire.spoil("PUT", says(304))
    with pytest.raises(PermanentFault, match=r"HTTP status 304 \(the store answers 304 in place of 412"):
        store.create(Namespace.PUB, NAME)


@pytest.mark.parametrize("key", ["s/../keep", "s/./x", "s//x", "s/.."])
def test_a_single_deletion_of_a_key_that_a_url_cannot_hold_is_refused(
    key: str, store: S3Store, place: Place, wire: Wire
) -> None:
    """s3.4: without a proxy, too; in a batch it is a name like any other."""
    with pytest.raises(PermanentFault, match="refusing to delete a key with an empty"):
        store.delete(key.encode())
    assert wire.sent("DELETE") == []
    place.fill(key)
    assert store.remove_tree(b"s", ()).found
    assert not [path for path in place.paths() if path.startswith("s/")]


def test_a_token_that_comes_twice_in_a_row_ends_a_listing(store: S3Store, wire: Wire) -> None:
    """s3.2, s3.6"""
    page = listing("<NextContinuationToken>t</NextContinuationToken>", "true")
    wire.spoil_all("GET", page)
    with pytest.raises(PermanentFault, match="the same continuation token twice in a row: t"):
        store.save_exists(b"s")
    assert len(wire.asked) == 2
