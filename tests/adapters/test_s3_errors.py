"""What a store's refusals and a line's failures mean to the domain, one table, met on the wire."""

from __future__ import annotations

import gc
import traceback

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
from tests.support.fault_proxy import Exchange, Fault, FaultProxy, Reply
from tests.support.moto_server import Moto
from tests.support.s3_faults import NAME, every_call, filled_place, read, translate, write
from tests.support.s3_roots import BUNDLE, Place
from tests.support.servers import Key, credentials, free_ports
from tests.support.wire_faults import (
    cut_in_headers,
    drips,
    lost_reply,
    lost_request,
    reset_in_headers,
    says,
    silence,
    truncated,
    web_page,
)

SECRET = 'canary+secret/of&40=characters<and>"more"'


@pytest.fixture(scope="module")
def place(moto: Moto) -> Place:
    return filled_place(moto)


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
    status: int, code: str, kind: type[StoreFault], store: S3Store, wire: FaultProxy
) -> None:
    """s3.8, s3.9, s3.10, s3.12"""
    assert type(translate(wire, says(status, code), write(store))) is kind
    assert len(wire.asked) == 1


@pytest.mark.parametrize(("status", "code", "kind"), [row for row in TABLE if row[:2] != (200, "InternalError")])
def test_a_failed_read_is_never_applied(
    status: int, code: str, kind: type[StoreFault], store: S3Store, wire: FaultProxy
) -> None:
    """s3.8: what is a perhaps of a write is certain of a read."""
    # A read is not in a race: the code of a lost race means a busy store, and the bare status a refusal.
    busy = NotApplied if code else PermanentFault
    expected = {OutcomeUnknown: NotApplied, Conflict: busy, AlreadyExists: PermanentFault}.get(kind, kind)
    assert type(translate(wire, says(status, code), read(store))) is expected
    assert len(wire.asked) == 1


@pytest.mark.parametrize("fault", [lost_request, lost_reply, reset_in_headers, cut_in_headers])
def test_a_broken_connection_leaves_a_put_unknown_and_a_read_not_applied(
    fault: Fault, store: S3Store, wire: FaultProxy
) -> None:
    """s3.8"""
    assert type(translate(wire, fault, write(store))) is OutcomeUnknown
    assert type(translate(wire, fault, read(store))) is NotApplied
    assert len(wire.asked) == 2


@pytest.mark.parametrize("fault", [silence, drips])
def test_a_read_timeout_leaves_a_put_unknown(fault: Fault, place: Place, wire: FaultProxy) -> None:
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


def test_a_truncated_object_is_never_an_object(store: S3Store, wire: FaultProxy) -> None:
    """watch.4"""
    assert type(translate(wire, truncated, lambda: store.read(b"s/trainer_state.json", 2**20))) is NotApplied


def test_a_web_page_is_not_a_success_and_the_message_has_a_hint(store: S3Store, wire: FaultProxy) -> None:
    """Neither an empty log nor a made entry nor a removed one nor a save's file."""
    for _, call in every_call(store):
        fault = translate(wire, web_page, call)
        assert type(fault) is PermanentFault
        assert "check the endpoint" in str(fault)


# urllib3 stumbles over a 303 and leaves its socket to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("code", ["", "TemporaryRedirect"])
def test_a_redirect_is_not_followed(status: int, code: str, store: S3Store, wire: FaultProxy) -> None:
    """s3.8"""
    with FaultProxy(wire.endpoint) as elsewhere:
        fault = says(status, code, headers=(("Location", elsewhere.endpoint + "/x"),))
        for call in (write(store), read(store), lambda: store.size(b"s/a")):
            wire.asked.clear()
            assert "check endpoint and region" in str(translate(wire, fault, call))
            assert len(wire.asked) <= 1
        assert elsewhere.asked == []
    gc.collect()


def test_a_region_in_a_redirect_is_not_used(store: S3Store, wire: FaultProxy) -> None:
    """s3.8"""
    fault = says(301, "PermanentRedirect", headers=(("x-amz-bucket-region", "eu-central-1"),))
    translate(wire, fault, read(store))
    translate(wire, fault, read(store))
    assert len(wire.asked) == 2
    assert all("/us-east-1/" in str(asked.header("authorization")) for asked in wire.asked)


def test_a_refused_head_gets_its_code_from_a_get(store: S3Store, wire: FaultProxy) -> None:
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


def test_clock_skew_shows_the_stores_code_and_a_hint(store: S3Store, wire: FaultProxy) -> None:
    text = str(translate(wire, says(403, "RequestTimeTooSkewed"), read(store)))
    assert "RequestTimeTooSkewed" in text
    assert "clock" in text


def test_the_message_has_the_request_and_the_stores_message_on_one_line(
    store: S3Store, place: Place, wire: FaultProxy
) -> None:
    """s3.13"""
    text = str(translate(wire, says(400, "Malformed", message="Not\n for  you."), read(store)))
    assert text == f"LIST {place.url}/pub/: Malformed: Not for you"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("AccessDenied", "the key must be allowed to read, write, list and delete below the prefix"),
        ("InvalidAccessKeyId", "check access_key_id and secret_access_key"),
        ("SignatureDoesNotMatch", "check access_key_id and secret_access_key"),
    ],
)
def test_a_refusal_says_what_to_look_at(code: str, hint: str, store: S3Store, place: Place, wire: FaultProxy) -> None:
    """s3.13"""
    text = str(translate(wire, says(403, code, message="No"), read(store)))
    assert text == f"LIST {place.url}/pub/: {code}: No ({hint})"


@pytest.mark.parametrize("spelled", [SECRET, "<![CDATA[" + SECRET + "]]>"], ids=["plain", "cdata"])
def test_a_secret_that_the_store_echoes_is_in_no_message_and_no_traceback(
    spelled: str, place: Place, wire: FaultProxy
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


def test_a_key_that_is_not_utf_8_is_refused_before_any_request(store: S3Store, wire: FaultProxy) -> None:
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
    answer: Fault, kind: type[StoreFault], store: S3Store, wire: FaultProxy
) -> None:
    """layout.7, publish.4"""
    assert type(translate(wire, answer, write(store))) is kind


def test_an_error_without_a_code_shows_its_status_and_a_hint(store: S3Store, wire: FaultProxy) -> None:
    """cli.5: a proxy's word, as a rule."""
    text = str(translate(wire, says(418), read(store)))
    assert "HTTP status 418" in text
    assert "check the endpoint and the proxy" in text


@pytest.mark.parametrize("message", ["<Message></Message>", "<Message/>", ""])
def test_an_error_without_a_message_shows_its_code_alone(message: str, store: S3Store, wire: FaultProxy) -> None:
    """probe.5"""
    error = Reply(404, [], f"<Error><Code>NoSuchBucket</Code>{message}</Error>".encode())
    said = str(translate(wire, lambda exchange: exchange.answer(error), read(store)))
    assert said.endswith("/pub/: NoSuchBucket (check the bucket and the endpoint)")


def test_the_body_of_an_error_that_is_too_large_is_ignored(store: S3Store, wire: FaultProxy) -> None:
    """s3.15, s3.8: its status says enough."""
    page = Reply(503, [("Content-Type", "text/html")], b"<html>" + b"x" * 2**17)
    fault = translate(wire, lambda exchange: exchange.answer(page), read(store))
    assert type(fault) is NotApplied
    assert "HTTP status 503" in str(fault)


def test_a_304_to_a_conditional_put_is_explained(store: S3Store, wire: FaultProxy) -> None:
    """s3.13: an old MinIO's answer to a taken name, not a redirect."""
    wire.spoil("PUT", says(304))
    with pytest.raises(PermanentFault, match=r"HTTP status 304 \(the store answers 304 in place of 412"):
        store.create(Namespace.PUB, NAME)
