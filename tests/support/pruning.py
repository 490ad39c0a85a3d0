"""What the tests of prune share: a published save, a prune, and the log that it leaves."""

from __future__ import annotations

from publish.domain.entry import Entry
from publish.domain.ports import Namespace, Store
from publish.domain.prune import prune
from publish.domain.retention import Policy
from tests.support.fakes import FakeReport, FakeStore
from tests.support.retrying import retrying


def save(store: FakeStore, epoch: int, step: int, path: bytes) -> Entry:
    entry = Entry.of(epoch, step, path)
    store.names[Namespace.PUB].add(entry.name)
    store.files[path + b"/trainer_state.json"] = b"{}"
    store.files[path + b"/weights"] = b"w"
    return entry


def run(store: Store, keep: int = 1) -> FakeReport:
    report = FakeReport()
    clean = prune(retrying(store), report, Policy(keep), map)
    assert clean is not bool(report.all("failed"))
    return report


def log(store: FakeStore) -> set[bytes]:
    return store.names[Namespace.PUB]
