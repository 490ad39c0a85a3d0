"""What a deletion did, key by key."""

from __future__ import annotations

import pytest

from publish.adapters.s3 import ConnectionSettings, S3Store
from publish.domain.errors import NotApplied, OutcomeUnknown, PermanentFault, StoreFault
from publish.domain.ports import Namespace
from tests.support.fault_proxy import Fault, FaultProxy
from tests.support.moto_server import Moto
from tests.support.s3_faults import filled_place
from tests.support.s3_roots import BUNDLE, Place, make_place
from tests.support.wire_faults import answers, says

SECRET = 'canary+secret/of&40=characters<and>"more"'


@pytest.fixture(scope="module")
def place(moto: Moto) -> Place:
    return filled_place(moto)


def test_a_fault_of_one_key_in_a_batch_belongs_to_that_key(store: S3Store, place: Place, wire: FaultProxy) -> None:
    """prune.5"""
    body = f"<Error><Key>{place.root.prefix}/pub/b</Key><Code>AccessDenied</Code><Message>locked</Message></Error>"
    wire.spoil("POST", answers(f"<DeleteResult>{body}</DeleteResult>"))
    stuck = store.remove_entries(Namespace.PUB, [b"a", b"b", b"c"])
    assert list(stuck) == [b"b"]
    assert type(stuck[b"b"]) is PermanentFault
    assert "AccessDenied: locked" in str(stuck[b"b"])


@pytest.mark.parametrize(("code", "kind"), [("SlowDown", NotApplied), ("InternalError", OutcomeUnknown)])
def test_a_passing_fault_of_one_key_retries_the_whole_batch(
    code: str, kind: type[StoreFault], store: S3Store, place: Place, wire: FaultProxy
) -> None:
    """s3.8"""
    body = f"<Error><Key>{place.root.prefix}/pub/b</Key><Code>{code}</Code></Error>"
    wire.spoil("POST", answers(f"<DeleteResult>{body}</DeleteResult>"))
    with pytest.raises(StoreFault) as raised:
        store.remove_entries(Namespace.PUB, [b"a", b"b"])
    assert type(raised.value) is kind


def test_if_one_object_cannot_be_removed_the_others_are(moto: Moto, wire: FaultProxy) -> None:
    """prune.5"""
    place = make_place(moto)
    place.fill("s/a", "s/b", "s/c")
    wire.spoil("POST", says(405, "MethodNotAllowed"))
    wire.spoil_all("DELETE", says(403, "AccessDenied"), part="/s/b")
    with pytest.raises(PermanentFault, match="/s/b: AccessDenied"):
        place.store(wire.endpoint).remove_tree(b"s", ())
    assert place.paths() == ["s/b"]


@pytest.mark.parametrize("answer", [says(409, "ObjectLocked"), says(412, "ObjectHasLegalHold"), says(409), says(412)])
def test_a_locked_object_is_a_fault_of_its_save(answer: Fault, store: S3Store, wire: FaultProxy) -> None:
    """prune.5: Conflict and AlreadyExists are for puts that another writer may win."""
    wire.spoil_all("DELETE", answer)
    wire.spoil_all("POST", answer)
    with pytest.raises(PermanentFault):
        store.remove_tree(b"s", (b"trainer_state.json",))


@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict"])
def test_a_locked_key_in_a_batch_is_a_fault_of_that_key(
    code: str, store: S3Store, place: Place, wire: FaultProxy
) -> None:
    """prune.5"""
    body = f"<Error><Key>{place.root.prefix}/pub/b</Key><Code>{code}</Code></Error>"
    wire.spoil("POST", answers(f"<DeleteResult>{body}</DeleteResult>"))
    assert list(store.remove_entries(Namespace.PUB, [b"a", b"b"])) == [b"b"]


def test_through_a_proxy_no_key_becomes_another(moto: Moto) -> None:
    """prune.3, proxy.3, s3.4: urllib3 takes dot segments out of the URL that a proxy is sent."""
    place = make_place(moto)
    place.fill("keep/z", "s/a", "s/../keep/z", "s/./dot", "s/..")
    before = place.paths()
    with FaultProxy(moto.endpoint) as wire:
        store = place.store(moto.endpoint, settings=ConnectionSettings(wire.endpoint, BUNDLE, 20.0))
        wire.spoil_all("POST", says(501, "NotImplemented"))
        with pytest.raises(PermanentFault, match=r"refusing to delete a key with"):
            store.remove_tree(b"s", ())
        assert all("/keep/" not in asked.target for asked in wire.asked if asked.method == "DELETE")
    assert sorted(set(before) - set(place.paths())) == ["s/a"]
    assert place.store().remove_tree(b"s", ()).found
    assert place.paths() == ["keep/z"]


def test_a_deletion_that_did_not_happen_is_a_fault(place: Place, store: S3Store, wire: FaultProxy) -> None:
    """s3.4: a save counts as removed when a listing of it is empty."""
    place.fill("s/a", "s/b")
    wire.spoil_all("POST", answers("<DeleteResult/>"))
    with pytest.raises(PermanentFault, match="still listed after the store deleted it"):
        store.remove_tree(b"s", ())


def test_a_key_that_xml_cannot_represent_does_not_fail_its_batch(moto: Moto) -> None:
    """prune.3: it goes alone, and the others together."""
    place = make_place(moto)
    place.fill("s/a", "s/b", "s/\x01", "s/\ufffe")
    with FaultProxy(moto.endpoint) as wire:
        assert place.store(wire.endpoint).remove_tree(b"s", ()).found
        (batch,) = (asked for asked in wire.asked if asked.method == "POST")
        assert b"s/a" in batch.body
        assert b"\x01" not in batch.body
    assert place.paths() == []


@pytest.mark.parametrize("key", ["s/../keep", "s/./x", "s//x", "s/.."])
def test_a_single_deletion_of_a_key_that_a_url_cannot_hold_is_refused(
    key: str, store: S3Store, place: Place, wire: FaultProxy
) -> None:
    """s3.4: without a proxy, too; in a batch it is a name like any other."""
    with pytest.raises(PermanentFault, match="refusing to delete a key with an empty"):
        store.delete(key.encode())
    assert wire.sent("DELETE") == []
    place.fill(key)
    assert store.remove_tree(b"s", ()).found
    assert not [path for path in place.paths() if path.startswith("s/")]
