"""verify.7: which parts of a save are read, and what reading may meet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pytest

from publish.domain import dcp_metadata
from publish.domain.errors import FormatError, NotApplied
from publish.domain.ports import FilesPage
from publish.domain.wholeness import Fault, Verdict, check_save
from tests.support.fakes import FakeStore
from tests.support.samples import sample, sample_files

In = TypeVar("In")
Out = TypeVar("Out")

ZIP = sample("torch/zip.pt")
MODEL = sample("hf/checkpoint-5/model.safetensors")
TRAINER = sample_files("hf/checkpoint-5")


class LargeStore(FakeStore):
    """One file is said to have another size than its content."""

    def __init__(self, sizes: dict[bytes, int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.reads: list[tuple[bytes, int, int]] = []

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        page = super().list_files(path, token)
        files = [file._replace(size=self.sizes.get(file.path, file.size)) for file in page.files]
        return FilesPage(files, page.next_token)

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        self.reads.append((path, start, length))
        return super().read_range(path, start, length)


def test_metadata_over_64_mib_is_reported_as_not_read() -> None:
    store = LargeStore({b".metadata": dcp_metadata.MAX_BYTES + 1})
    store.files |= {b"s/.metadata": b"text", b"s/__0_0.distcp": b"1"}
    assert check_save(store, b"s", map) == Verdict([], [b".metadata"])
    assert store.reads == []


@pytest.mark.parametrize("name", [b"config.json", b"x.index.json"])
def test_json_over_64_mib_is_not_read(name: bytes) -> None:
    store = LargeStore({name: dcp_metadata.MAX_BYTES + 1})
    store.files[b"s/" + name] = b"{"
    assert check_save(store, b"s", map).is_whole
    assert store.reads == []


def test_a_dangling_link_is_broken() -> None:
    """verify.7"""
    store = LargeStore({b"model.safetensors": -1, b"x": -1})
    store.files |= {b"s/model.safetensors": b"", b"s/x": b"", b"s/y": b"1"}
    why = "a link that leads nowhere"
    assert check_save(store, b"s", map).faults == [Fault(b"model.safetensors", why), Fault(b"x", why)]


def test_a_large_file_is_read_at_its_ends_alone() -> None:
    store = LargeStore({})
    header = json.dumps(
        {"a": {"data_offsets": [0, 2_000_000]}, "pad": {"data_offsets": [0, 1], "x": "x" * 70_000}}
    ).encode()
    model = len(header).to_bytes(8, "little") + header + bytes(2_000_000)
    store.files |= {b"s/m.safetensors": model, b"s/o.pt": b"PK\3\4" + bytes(2_000_000) + ZIP[-98:]}
    assert [fault.file for fault in check_save(store, b"s", map).faults] == [b"o.pt"]
    assert store.reads == [
        (b"s/m.safetensors", 0, 65536),
        (b"s/m.safetensors", 65536, len(header) + 8 - 65536),
        (b"s/o.pt", 0, 4),
        (b"s/o.pt", -98, 98),
    ]


def test_a_small_file_is_read_once() -> None:
    store = LargeStore({})
    store.files |= {b"s/m.safetensors": MODEL, b"s/o.pt": ZIP, b"s/.metadata": b"{}", b"s/x.bin": b""}
    check_save(store, b"s", map)
    assert [path for path, _, _ in store.reads] == [b"s/.metadata", b"s/m.safetensors", b"s/o.pt"]


class VanishingStore(FakeStore):
    """What is listed is gone when it is read."""

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        self.files.pop(path, None)
        return super().read_range(path, start, length)


def test_a_file_that_vanishes_meanwhile_is_broken() -> None:
    store = VanishingStore()
    store.files[b"s/o.pt"] = ZIP
    assert check_save(store, b"s", map).faults == [Fault(b"o.pt", "not there any more")]


class UnreadableStore(FakeStore):
    def __init__(self, fault: Exception) -> None:
        super().__init__()
        self.fault = fault

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        raise self.fault


@pytest.mark.parametrize("fault", [FormatError("not readable: Permission denied"), NotApplied("no answer")])
def test_a_file_that_cannot_be_read_is_an_error_and_no_verdict(fault: Exception) -> None:
    """verify.7"""
    store = UnreadableStore(fault)
    store.files[b"s/o.pt"] = ZIP
    with pytest.raises(type(fault), match=str(fault)):
        check_save(store, b"s", map)


def test_files_are_read_in_parallel() -> None:
    calls: list[int] = []

    def several(work: Callable[[In], Out], items: Iterable[In], /) -> Iterator[Out]:
        asked = list(items)
        calls.append(len(asked))
        return iter([work(item) for item in asked])

    store = FakeStore()
    store.files |= {b"s/" + path: content for path, content in TRAINER.items()}
    assert check_save(store, b"s", several).is_whole
    assert calls == [8]
