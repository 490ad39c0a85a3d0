"""Whole schedules of faults on a real store's connection: what is reported is true, whatever happens."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from publish.domain.entry import Entry
from publish.domain.errors import PublishError
from publish.domain.prune import prune
from publish.domain.publish import publish_entry
from publish.domain.resolve import latest
from publish.domain.retention import Policy
from tests.support.fakes import FakeReport
from tests.support.fault_proxy import Fault, passes
from tests.support.moto_server import Moto
from tests.support.retrying import retrying
from tests.support.s3_faults import BUSY, CONFLICT, FINAL
from tests.support.s3_roots import make_place, wire_to
from tests.support.wire_faults import (
    cut_in_headers,
    lost_reply,
    lost_request,
    reset_in_headers,
    truncated,
)

FAULTS: dict[str, Fault] = {
    "passes": passes,
    "lost request": lost_request,
    "lost reply": lost_reply,
    "reset": reset_in_headers,
    "cut": cut_in_headers,
    "truncated": truncated,
    "conflict": CONFLICT,
    **BUSY,
    **{name: fault for name, (fault, _) in FINAL.items()},
}
schedules = st.lists(st.sampled_from(sorted(FAULTS)), max_size=8)


_SETTINGS = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(_SETTINGS, max_examples=5)
@given(puts=schedules, gets=schedules, deletes=schedules)
def test_whatever_the_network_does_what_is_reported_is_true(
    puts: list[str], gets: list[str], deletes: list[str], moto: Moto
) -> None:
    """s3.8, s3.9, s3.10, prune.1: and on a working network everything ends as it should."""
    _check(puts, gets, deletes, moto)


@pytest.mark.exhaustive
@settings(_SETTINGS, max_examples=60)
@given(puts=schedules, gets=schedules, deletes=schedules)
def test_whatever_the_network_does_in_many_schedules_what_is_reported_is_true(
    puts: list[str], gets: list[str], deletes: list[str], moto: Moto
) -> None:
    """s3.8, s3.9, s3.10, prune.1"""
    _check(puts, gets, deletes, moto)


def _check(puts: list[str], gets: list[str], deletes: list[str], moto: Moto) -> None:
    place = make_place(moto)
    kept = Entry.of(1, 1, b"exec/a/checkpoint-1")
    place.fill(f"pub/{kept.name.decode()}", body=b"")
    entry = Entry.of(1, 2, b"exec/a/checkpoint-2")
    place.fill("exec/a/checkpoint-1/trainer_state.json", "exec/a/checkpoint-1/w", "exec/a/checkpoint-2/w")
    with wire_to(moto) as wire:
        wire.spoil("PUT", *map(FAULTS.__getitem__, puts))
        wire.spoil("GET", *map(FAULTS.__getitem__, gets))
        for method in ("POST", "DELETE"):
            wire.spoil(method, *map(FAULTS.__getitem__, deletes))
        store, report = retrying(place.store(wire.endpoint)), FakeReport()
        made = found = pruned = None
        try:
            publish_entry(store, report, entry)
            made = True
            found = latest(store)
            pruned = prune(store, report, Policy(1), map)
        except PublishError:
            pass
        said = len(report.all("published") + report.all("already"))
        assert said == bool(made)
        paths = place.paths()
        assert not made or f"pub/{entry.name.decode()}" in paths
        assert found is None or found == entry
        # A save goes only after its entry, and is on record until it is gone.
        on_record = [path for path in paths if path.startswith(("pub/", ".publish/prune/"))]
        entries = {Entry.parse(path.rpartition("/")[2].encode()) for path in on_record}
        for one in (kept, entry):
            assert one in entries or one.path in report.all("removed") or (one == entry and not made) or pruned
        wire.heal()
        store = retrying(place.store(wire.endpoint))
        publish_entry(store, report, entry)
        assert latest(store) == entry
        assert prune(store, report, Policy(1), map)
    assert place.paths() == ["exec/a/checkpoint-2/w", f"pub/{entry.name.decode()}"]
