"""What the S3 store sends, read off the wire."""

from __future__ import annotations

import pytest
from botocore.awsrequest import AWSRequest

from publish.adapters.s3 import ConnectionSettings, S3Store
from publish.adapters.s3.client import connect
from publish.domain.errors import AlreadyExists, ConfigError, PermanentFault
from publish.domain.ports import Namespace
from publish.domain.root import S3Root
from publish.domain.wholeness import check_save
from tests.support.fault_proxy import FaultProxy
from tests.support.moto_server import Moto
from tests.support.s3_roots import BUNDLE, Place, make_place, paths_of, wire_to
from tests.support.servers import KeyedServer, credentials
from tests.support.wire_faults import answers, says

NAME = b"00000000000000000001-00000000000000000002-MFRGG"


def everything(store: S3Store) -> None:
    """Calls each method so that each kind of request is sent."""
    store.list_entries(Namespace.PUB, None)
    store.create(Namespace.PUB, NAME)
    store.put(b"beside", b"some bytes", only_if_new=False)
    store.save_exists(b"a/save")
    store.list_directories(b"a", None)
    store.size(b"beside")
    store.read(b"beside", 100)
    store.remove_entries(Namespace.PUB, [NAME, NAME + b"2"])
    store.remove_tree(b"beside", [b".metadata"])
    store.delete(b"beside")


def test_an_entry_is_put_without_a_body_and_with_if_none_match(store: S3Store, wire: FaultProxy) -> None:
    """layout.7"""
    store.create(Namespace.PUB, NAME)
    (put,) = wire.asked
    assert put.method == "PUT"
    assert put.header("if-none-match") == "*"
    assert put.body == b""
    assert put.header("content-length") == "0"


def test_every_request_is_path_style_and_signed_with_v4_for_s3(store: S3Store, place: Place, wire: FaultProxy) -> None:
    """s3.7"""
    everything(store)
    assert len(wire.asked) > 10
    for asked in wire.asked:
        assert asked.path.startswith(f"/{place.root.bucket}")
        authorization = asked.header("authorization")
        assert authorization is not None
        assert authorization.startswith("AWS4-HMAC-SHA256 Credential=")
        assert "/us-east-1/s3/aws4_request," in authorization
        assert asked.header("host") == wire.endpoint.removeprefix("http://")


def test_no_request_has_a_header_that_compatible_stores_refuse(store: S3Store, wire: FaultProxy) -> None:
    """s3.7"""
    everything(store)
    for asked in wire.asked:
        names = {name.lower() for name, _ in asked.headers}
        assert not names & {"expect", "transfer-encoding", "content-encoding", "x-amz-trailer"}
        assert not [name for name in names if "checksum" in name]
        assert asked.header("user-agent").startswith("publish/")  # type: ignore[union-attr]  # a missing one fails too


def test_a_batch_delete_has_a_content_md5(store: S3Store, wire: FaultProxy) -> None:
    """AWS, DeleteObjects: Content-MD5."""
    store.remove_entries(Namespace.PUB, [NAME, NAME + b"2"])
    (post,) = wire.sent("POST")
    assert post.header("content-md5")


def test_a_bucket_named_like_s3_express_is_signed_for_s3(moto: Moto, wire: FaultProxy) -> None:
    """s3.7"""
    bucket = "odd--use1-az4--x-s3"
    wire.spoil_all("GET", says(404, "NoSuchBucket"))
    with pytest.raises(PermanentFault):
        Place(moto, S3Root(bucket, "run")).store(wire.endpoint).list_entries(Namespace.PUB, None)
    (asked,) = wire.asked
    assert asked.path == f"/{bucket}"
    assert "/us-east-1/s3/aws4_request," in str(asked.header("authorization"))


@pytest.mark.parametrize("bucket", ["UPPER_case", "a.b.c", "a_b-c.d"])
def test_every_valid_bucket_name_is_sent_unchanged(bucket: str, moto: Moto, wire: FaultProxy) -> None:
    """root.2"""
    wire.spoil_all("GET", says(404, "NoSuchBucket"))
    with pytest.raises(PermanentFault):
        Place(moto, S3Root(bucket, "run")).store(wire.endpoint).list_entries(Namespace.PUB, None)
    assert [asked.path for asked in wire.asked] == [f"/{bucket}"]


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (b"a//b", "a//b"),
        (b"a/./b", "a/./b"),
        (b"a/../b", "a/../b"),
        (b"/a", "/a"),
        (b"a b+c%2F", "a%20b%2Bc%252F"),
        ("größe/日".encode(), "gr%C3%B6%C3%9Fe/%E6%97%A5"),
    ],
)
def test_keys_are_sent_unchanged(path: bytes, sent: str, store: S3Store, place: Place, wire: FaultProxy) -> None:
    """root.2, layout.3: nothing is normalised on the way."""
    store.size(path)
    assert [asked.path for asked in wire.asked] == [f"/{place.root.bucket}/{place.root.prefix}/{sent}"]


def test_the_prefix_of_a_listing_is_sent_unchanged(store: S3Store, place: Place, wire: FaultProxy) -> None:
    """root.2, watch.5"""
    store.list_directories(b"exec/../a+b", None)
    assert [asked.query["prefix"] for asked in wire.asked] == [f"{place.root.prefix}/exec/../a+b/"]
    assert [asked.query["delimiter"] for asked in wire.asked] == ["/"]


def test_reading_the_log_sends_only_lists_of_its_folder(seaweedfs: KeyedServer) -> None:
    """resolve.2: one LIST a page."""
    place = make_place(seaweedfs)
    place.fill(*(f"pub/{number:04}" for number in range(1001)), "pub2/x", "other")
    with wire_to(seaweedfs) as wire:
        store = place.store(wire.endpoint)
        first = store.list_entries(Namespace.PUB, None)
        assert first.next_token is not None
        second = store.list_entries(Namespace.PUB, first.next_token)
    assert second.next_token is None
    assert [*first.names, *second.names] == [b"%04d" % number for number in range(1001)]
    assert paths_of(wire) == [f"GET /{place.root.bucket}"] * 2
    assert {asked.query["prefix"] for asked in wire.asked} == {f"{place.root.prefix}/pub/"}


def test_the_marker_of_the_log_is_not_an_entry_and_a_deeper_key_is_unrecognised(store: S3Store, place: Place) -> None:
    """layout.4"""
    place.fill("pub/", "pub/a", "pub/b/", "pub/c/d")
    assert sorted(store.list_entries(Namespace.PUB, None).names) == [b"a", b"b/", b"c/d"]


def test_the_folder_marker_of_a_save_is_not_a_save_and_is_removed_with_it(store: S3Store, place: Place) -> None:
    """publish.2, prune.3"""
    place.fill("s/", "t", "t/", "t/x", "tt")
    assert not store.save_exists(b"s")
    assert store.save_exists(b"t")
    assert store.remove_tree(b"t", ()) == (True, False)
    assert place.paths() == ["s/", "tt"]
    assert store.remove_tree(b"s", ()) == (True, False)
    assert place.paths() == ["tt"]


def test_a_save_is_removed_with_its_marker_first_and_alone(store: S3Store, place: Place, wire: FaultProxy) -> None:
    """prune.6"""
    place.fill("run/checkpoint-1/a", "run/checkpoint-1/trainer_state.json", "run/checkpoint-1/z/.metadata")
    store.remove_tree(b"run/checkpoint-1", [b"trainer_state.json", b".metadata"])
    changing = [asked for asked in wire.asked if asked.method != "GET"]
    marker, rest = changing[0], changing[1:]
    assert (marker.method, marker.path) == (
        "DELETE",
        f"/{place.root.bucket}/{place.root.prefix}/run/checkpoint-1/trainer_state.json",
    )
    assert [asked.method for asked in rest] == ["POST"]
    assert place.paths() == []


def test_a_marker_beyond_the_first_page_is_removed_first(seaweedfs: KeyedServer) -> None:
    """prune.6"""
    place = make_place(seaweedfs)
    place.fill(*(f"s/a{number:04}" for number in range(1000)), "s/trainer_state.json")
    with wire_to(seaweedfs) as wire:
        assert place.store(wire.endpoint).remove_tree(b"s", [b"trainer_state.json"]) == (True, True)
        assert [asked.method for asked in wire.asked] == ["GET", "DELETE", "POST", "GET"]
    assert place.paths() == ["s/a0999"]


@pytest.mark.parametrize(
    ("status", "code"), [(501, "NotImplemented"), (405, "MethodNotAllowed"), (400, "MissingContentMD5"), (501, "")]
)
def test_without_batch_delete_keys_are_deleted_one_by_one(
    status: int, code: str, store: S3Store, place: Place, wire: FaultProxy
) -> None:
    wire.spoil_all("POST", says(status, code))
    place.fill(*(f"pub/{name}" for name in "abcde"))
    assert store.remove_entries(Namespace.PUB, [b"a", b"b", b"c"]) == {}
    assert store.remove_entries(Namespace.PUB, [b"d", b"e"]) == {}
    assert place.paths() == []
    # It is asked once, and remembered.
    assert len(wire.sent("POST")) == 1
    assert len(wire.sent("DELETE")) == 5


def test_a_key_that_xml_cannot_represent_is_deleted_alone_and_batches_continue(
    store: S3Store, place: Place, wire: FaultProxy
) -> None:
    place.fill("s/a", "s/b", "t/c", "t/d")
    wire.spoil("POST", says(400, "MalformedXML"))
    store.remove_tree(b"s", ())
    store.remove_tree(b"t", ())
    assert len(wire.sent("POST")) == 2
    assert place.paths() == []


def test_a_refused_head_is_followed_by_a_get_that_shows_the_reason(
    store: S3Store, place: Place, wire: FaultProxy
) -> None:
    """s3.12, watch.5"""
    place.fill("s/.metadata", body=b"four")
    wire.spoil("HEAD", says(403))
    assert store.size(b"s/.metadata") == 4
    assert [asked.method for asked in wire.asked] == ["HEAD", "GET"]


def test_an_object_is_read_no_further_than_the_limit(store: S3Store, place: Place) -> None:
    """watch.4, watch.5"""
    place.fill("big", body=bytes(2**26 + 2**20))
    assert store.read(b"big", 2**26 + 1) == bytes(2**26 + 1)


def test_the_last_put_is_what_is_read(store: S3Store) -> None:
    store.create(Namespace.PUB, NAME)
    with pytest.raises(AlreadyExists):
        store.create(Namespace.PUB, NAME)
    assert store.list_entries(Namespace.PUB, None) == ([NAME], None)


def test_requests_of_a_client_share_a_connection(store: S3Store, wire: FaultProxy) -> None:
    """Loading the trusted roots takes longer than a request."""
    for number in range(5):
        store.create(Namespace.PUB, NAME + b"%d" % number)
    assert wire.connections == 1


@pytest.mark.parametrize(
    ("endpoint", "region", "url"),
    [
        ("http://store.example:9000", "us-east-1", "http://store.example:9000"),
        ("https://store.example", "somewhere", "https://store.example"),
        (None, "us-east-1", "https://s3.us-east-1.amazonaws.com"),
        (None, "eu-central-1", "https://s3.eu-central-1.amazonaws.com"),
        (None, "us-gov-west-1", "https://s3.us-gov-west-1.amazonaws.com"),
        (None, "cn-north-1", "https://s3.cn-north-1.amazonaws.com.cn"),
        (None, "eusc-de-east-1", "https://s3.eusc-de-east-1.amazonaws.eu"),
    ],
)
def test_a_request_is_sent_to_the_endpoint_or_to_awss_regional_one(
    endpoint: str | None, region: str, url: str, moto: Moto
) -> None:
    """creds.3, s3.7"""
    client = connect(
        credentials(moto)._replace(endpoint=endpoint, region=region), ConnectionSettings(None, BUNDLE, 5.0)
    )
    sent: list[AWSRequest] = []

    def keep(request: AWSRequest, **_: object) -> None:
        sent.append(request)
        raise InterruptedError

    client.meta.events.register_first("before-send.s3", keep)
    with pytest.raises(InterruptedError):
        client.list_objects_v2(Bucket="bucket")
    assert [request.url for request in sent] == [f"{url}/bucket?list-type=2&encoding-type=url"]
    assert f"/{region}/s3/aws4_request".encode() in sent[0].headers["Authorization"]


def test_keys_in_a_listing_may_be_written_in_every_form_of_xml(store: S3Store, place: Place, wire: FaultProxy) -> None:
    """resolve.1: what is taken out of a listing unread is never a key's."""
    folder = f"{place.root.prefix}/pub/"
    for key in ("<Key>{}a</Key><Size>1</Size>", "<Key><![CDATA[{}<Size>1</Size>]]></Key><Size>1</Size>"):
        contents = f"<Contents>{key.format(folder)}</Contents>"
        wire.spoil("GET", answers(f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"))
    assert store.list_entries(Namespace.PUB, None).names == [b"a"]
    assert store.list_entries(Namespace.PUB, None).names == [b"<Size>1</Size>"]


def test_a_save_is_judged_by_one_listing_and_two_small_reads_of_a_large_file(
    store: S3Store, place: Place, wire: FaultProxy
) -> None:
    """verify.7"""
    header = b'{"a":{"data_offsets":[0,200000]}}'
    place.fill(
        "s/m-1.safetensors", "s/m-2.safetensors", body=len(header).to_bytes(8, "little") + header + bytes(200_000)
    )
    place.fill("s/x.index.json", body=b'{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}')
    place.fill("s/notes.txt", body=b"text")
    place.fill("s/optimizer.pt", body=b"PK\3\4" + bytes(100_000))
    assert [fault.file for fault in check_save(store, b"s", map).faults] == [b"optimizer.pt"]
    ranges = {(asked.path.rpartition("/")[2], asked.header("range")) for asked in wire.asked if asked.method == "GET"}
    assert len(wire.asked) == len(ranges) == 6
    assert ranges == {
        (place.root.bucket, None),
        ("m-1.safetensors", "bytes=0-65535"),
        ("m-2.safetensors", "bytes=0-65535"),
        ("x.index.json", f"bytes=0-{64 * 2**20 - 1}"),
        ("optimizer.pt", "bytes=0-3"),
        ("optimizer.pt", "bytes=-98"),
    }


def test_the_longest_key_that_an_entry_needs_is_held_to_the_limit(store: S3Store, place: Place) -> None:
    """layout.8: that of its removal record."""
    room = 1024 - len(f"{place.root.prefix}/.publish/prune/")
    store.check_name_length(b"n" * room)
    with pytest.raises(
        ConfigError, match=r"the key of its removal record would have 1025 bytes and the limit is 1024$"
    ):
        store.check_name_length(b"n" * (room + 1))
