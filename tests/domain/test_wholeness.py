"""verify.6 and verify.7: what makes a save whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.adapters.posix import PosixStore
from publish.domain import ocdbt
from publish.domain.wholeness import Fault, Verdict, check_save
from tests.support.fakes import FakeStore
from tests.support.samples import WHOLE_SAVES, faults_of, sample, sample_files, verdict_on

In = TypeVar("In")
Out = TypeVar("Out")

ZIP = sample("torch/zip.pt")
OLD = sample("torch/old.pt")
MODEL = sample("hf/checkpoint-5/model.safetensors")
METADATA = sample("dcp/step-200/.metadata")
STATE = sample("hf/checkpoint-5/trainer_state.json").rstrip()
TRAINER = sample_files("hf/checkpoint-5")
DCP = sample_files("dcp/step-200")


def index_of(*names: str) -> bytes:
    return json.dumps({"weight_map": {f"w{number}": name for number, name in enumerate(names)}}).encode()


@pytest.mark.parametrize("name", WHOLE_SAVES)
def test_a_save_that_a_framework_wrote_is_whole(name: str) -> None:
    assert verdict_on(sample_files(name), b"exec/1/" + name.rpartition("/")[2].encode()) == Verdict([], [])


@pytest.mark.parametrize("folder", ["hf/checkpoint-5", "dcp/step-200", "dcp/hf-fsdp2-sharded"])
def test_a_save_with_any_of_its_files_cut_off_is_broken(folder: str) -> None:
    files = sample_files(folder)
    for path, content in files.items():
        for size in {0, 1, len(content) // 2, len(content.rstrip()) - 1}:
            assert [file for file, _ in faults_of({**files, path: content[:size]})] != [], (path, size)


def test_an_overwrite_that_was_killed_is_broken() -> None:
    files = sample_files("dcp/killed-mid-overwrite/step-5")
    assert faults_of(files) == [(".metadata", "it needs 6806 bytes of a file that has 0: __0_0.distcp")]


def test_a_save_without_files_is_not_there() -> None:
    assert check_save(FakeStore(), b"exec/1/save", map) == Verdict([Fault(b"", "not there")], [])


@pytest.mark.parametrize(
    "files",
    [
        {b"model.safetensors": MODEL, b"nested/deeper/model.safetensors": MODEL},
        {b"x.index.json": index_of("a.safetensors"), b"a.safetensors": MODEL},
        {b"in/x.index.json": index_of("a.bin"), b"in/a.bin": ZIP},
        {b"x.index.json": b"{}"},
        {b"in/x.index.json": b"not JSON"},
        {b"optimizer.pt": ZIP, b"rng_state.pth": OLD, b"training_args.bin": OLD, b"last.ckpt": ZIP},
        {b"mp_rank_00/model_optim_rng.pt": ZIP, b"global_step1/mp_rank_00_model_states.pt": ZIP},
        {b"x.pt": b"text that is something else", b"y.ckpt": b"<html>", b"z.pth": b"\0\0\0\1"},
        {b"x.bin": bytes(8), b"y.bin": b"abc", b"tokens.bin": b"PKzip"},
        {b"x.pt": b"\x80"},
        {b"config.json": b"{}", b"vocab.json": b'{"a": NaN}', b"note.json": b"{} and more", b"list.json": b"[1]"},
        {b"nested/config.json": b"", b"config.yaml": b"", b"a.txt": b"", b".json": b"{}"},
        {b".metadata": b'{"another": "program"}', b"x/.metadata": b" []"},
        {b".metadata": METADATA, b"__0_0.distcp": bytes(1641), b"__1_0.distcp": bytes(2903), b"__2_0.distcp": b""},
        {b".metadata": sample("dcp/s3-binaryprefix.metadata"), b"0000000000/epoch_3/__0_0.distcp": bytes(2838)},
        {b"trainer_state.json": STATE, b"checkpoint-9/trainer_state.json": b""},
        {b"trainer_state.pt": ZIP, b"data.pt": ZIP},
        {b"manifest.ocdbt": b"x" * (ocdbt.MAX_BYTES + 1), b"d/0123": b""},
    ],
    ids=lambda files: b" ".join(files).decode(),
)
def test_what_is_whole_or_not_judged_is_whole(files: dict[bytes, bytes]) -> None:
    assert faults_of(files) == []


@pytest.mark.parametrize(
    ("files", "file", "why"),
    [
        ({b"model.safetensors": b""}, "model.safetensors", "cut off: 0 bytes"),
        ({b"a/model.safetensors": MODEL[:-1]}, "a/model.safetensors", None),
        ({b"x.index.json": b""}, "x.index.json", "empty"),
        ({b"x.index.json": index_of("a")[:-1]}, "x.index.json", f"cut off: {len(index_of('a')) - 1} bytes"),
        ({b"x.index.json": index_of("a") + b","}, "x.index.json", "not JSON"),
        ({b"x.index.json": index_of("a.x")}, "x.index.json", "it names a file that is not there: a.x"),
        ({b"x.index.json": index_of("a.x"), b"a.x": b""}, "x.index.json", "it names a file that is empty: a.x"),
        (
            {b"in/x.index.json": index_of("a.x"), b"a.x": b"1"},
            "in/x.index.json",
            "it names a file that is not there: a.x",
        ),
        ({b"optimizer.pt": b""}, "optimizer.pt", "empty"),
        ({b"optimizer.pt": b"text"}, "optimizer.pt", "not a file that torch.save wrote"),
        ({b"in/pytorch_model-00001-of-00002.bin": bytes(9)}, None, "not a file that torch.save wrote"),
        ({b"adapter_model.bin": b"PK"}, "adapter_model.bin", "not a file that torch.save wrote"),
        ({b"mp_rank_00/distrib_optim.pt": b"text"}, None, "not a file that torch.save wrote"),
        ({b"rng_state.pth": bytes(100)}, "rng_state.pth", "not a file that torch.save wrote"),
        ({b"x.pt": b""}, "x.pt", "empty"),
        ({b"x.bin": b""}, "x.bin", "empty"),
        ({b"x.bin": b"PK\3"}, "x.bin", "cut off: 3 bytes"),
        ({b"x.ckpt": b"abc"}, "x.ckpt", "cut off: 3 bytes"),
        ({b"x.pth": bytes(100_000)}, "x.pth", "it begins with zeros"),
        ({b"x.ckpt": ZIP[:-1]}, "x.ckpt", "cut off, or followed by something: no directory at its end"),
        ({b".metadata": b""}, ".metadata", "empty"),
        ({b".metadata": b"text"}, ".metadata", "not a pickle"),
        ({b"a/.metadata": METADATA[:-1], b"a/__0_0.distcp": b""}, "a/.metadata", "cut off: 1082 bytes"),
        (
            {b".metadata": METADATA, b"__0_0.distcp": bytes(1641)},
            ".metadata",
            "it names a file that is not there: __1_0.distcp",
        ),
        (
            {b".metadata": METADATA, b"__0_0.distcp": bytes(1640), b"__1_0.distcp": bytes(2902)},
            ".metadata",
            "it needs 1641 bytes of a file that has 1640: __0_0.distcp",
        ),
        ({b"a/__0_0.distcp": b"1", b"b/.metadata": b"{}"}, "a/__0_0.distcp", "no .metadata in its folder or above it"),
        ({b"__1_0.distcp": b"1"}, "__1_0.distcp", "no .metadata in its folder or above it"),
        ({b"other.distcp": b"1"}, "other.distcp", "no .metadata in its folder or above it"),
        ({b"config.json": b""}, "config.json", "empty"),
        ({b"config.json": b" "}, "config.json", "cut off: 1 bytes"),
        ({b"config.json": b'{"a": '}, "config.json", "cut off: 6 bytes"),
        ({b"trainer_state.json": STATE[:-1]}, "trainer_state.json", f"cut off: {len(STATE) - 1} bytes"),
        ({b"trainer_state.json": b"{}"}, "trainer_state.json", "no 64-bit integer global_step"),
        ({b"manifest.ocdbt": b""}, "manifest.ocdbt", "cut off: 0 bytes"),
        ({b"rng_state_1.pth": ZIP}, "rng_state_1.pth", "1 of 2 ranks are there; rank 0 is not"),
    ],
)
def test_what_is_broken_is_named(files: dict[bytes, bytes], file: str | None, why: str | None) -> None:
    faults = faults_of(files)
    assert len(faults) == 1
    assert faults[0][0] == (file or next(iter(files)).decode())
    assert faults[0][1] == (why or faults[0][1])


def test_a_rank_s_own_metadata_goes_with_its_pieces() -> None:
    files = sample_files("dcp/nocoll-300")
    del files[b"__1.metadata"]
    assert faults_of(files) == [("__1_0.distcp", "no .metadata in its folder or above it")]


def test_all_faults_are_there_in_the_order_of_the_files() -> None:
    files = {b"c.pt": b"", b"a.safetensors": b"", b"b.json": b"", b"d/manifest.ocdbt": b""}
    assert [file for file, _ in faults_of(files)] == ["a.safetensors", "b.json", "c.pt", "d/manifest.ocdbt"]


def test_the_step_of_a_state_is_that_of_its_folder() -> None:
    """watch.4"""
    files = {b"trainer_state.json": STATE}
    assert faults_of(files, b"exec/1/checkpoint-5") == []
    assert faults_of(files, b"checkpoint-005") == []
    assert faults_of(files, b"exec/checkpoint-6/best") == []
    assert faults_of(files, b"exec/1/checkpoint-6") == [
        ("trainer_state.json", "global_step differs from the step in the name of the folder: 5")
    ]


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/__0_0.txt", "a/../../x"])
def test_metadata_that_leads_out_of_its_folder_is_broken(path: str) -> None:
    assert faults_of({b"in/.metadata": _metadata_naming(path), b"other/__0_0.txt": b"1"}) == [
        ("in/.metadata", f"it names a file outside its folder: {path}")
    ]


def test_metadata_that_names_a_file_in_a_roundabout_way_is_read() -> None:
    assert faults_of({b"in/.metadata": _metadata_naming("./a//b"), b"in/a/b": b"12345"}) == []


def _metadata_naming(path: str) -> bytes:
    def text(value: str) -> bytes:
        return b"\x8c" + bytes([len(value)]) + value.encode()

    piece = (
        b"cx\nPiece\n)\x81}(" + text("relative_path") + text(path) + text("offset") + b"K\0" + text("length") + b"K\5ub"
    )
    return b"\x80\x04cx\nMetadata\n)\x81}" + text("storage_data") + b"}N" + piece + b"ssb."


def test_a_save_that_is_one_file_is_judged_by_its_name() -> None:
    store = FakeStore()
    store.files |= {b"exec/a/step=5.ckpt": ZIP, b"exec/a/step=6.ckpt": ZIP[:-1], b"top.ckpt": b""}
    assert check_save(store, b"exec/a/step=5.ckpt", map).is_whole
    assert [fault.file for fault in check_save(store, b"exec/a/step=6.ckpt", map).faults] == [b"step=6.ckpt"]
    assert check_save(store, b"top.ckpt", map).faults == [Fault(b"top.ckpt", "empty")]


def test_a_save_that_is_a_link_to_a_file_is_judged(tmp_path: Path) -> None:
    """verify.7"""
    (tmp_path / "a.ckpt").write_bytes(ZIP)
    (tmp_path / "last.ckpt").symlink_to("a.ckpt")
    (tmp_path / "gone.ckpt").symlink_to("b.ckpt")
    store = PosixStore(bytes(tmp_path))
    assert check_save(store, b"last.ckpt", map).is_whole
    assert check_save(store, b"gone.ckpt", map).faults == [Fault(b"", "not there")]


def test_links_in_a_save_are_followed(tmp_path: Path) -> None:
    """verify.7"""
    shard = tmp_path / "shared" / "m.safetensors"
    shard.parent.mkdir()
    shard.write_bytes(MODEL)
    save = tmp_path / "save"
    save.mkdir()
    (save / "m.safetensors").symlink_to("../shared/m.safetensors")
    store = PosixStore(bytes(tmp_path))
    assert check_save(store, b"save", map).is_whole
    shard.write_bytes(MODEL[:-1])
    assert [fault.file for fault in check_save(store, b"save", map).faults] == [b"m.safetensors"]
    shard.unlink()
    assert check_save(store, b"save", map).faults == [Fault(b"m.safetensors", "a link that leads nowhere")]


def test_zeros_of_the_right_size_are_not_found() -> None:
    """verify.6: structure only. A power loss that leaves the size and not the data is data.1's matter."""
    metadata_and_zeros = {
        path: content if path == b".metadata" else bytes(len(content)) for path, content in DCP.items()
    }
    assert faults_of(metadata_and_zeros) == []
    assert faults_of({b"m.safetensors": MODEL[:-1000] + bytes(1000)}) == []


@given(st.data())
def test_no_save_makes_the_check_fail(data: st.DataObject) -> None:
    """verify.5"""
    real = {**TRAINER, **DCP}
    files = dict(real)
    for path in data.draw(st.lists(st.sampled_from(sorted(real)), max_size=4)):
        content = bytearray(real[path])
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        files[data.draw(st.sampled_from(sorted(real)))] = bytes(content)
    verdict_on(files)
