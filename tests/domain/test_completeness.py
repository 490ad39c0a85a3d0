"""The checks that the table of frameworks is written in, on saves in memory."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from publish.domain import dcp_metadata
from publish.domain.completeness import why_incomplete
from publish.domain.errors import FormatError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.layout import ITSELF, Check, Layout, Need, Save, Tracker
from tests.support.fakes import FakeStore
from tests.support.layouts import Metadata, safetensors, torch_zip

HF, DCP = FRAMEWORKS["hf"].layouts[0], FRAMEWORKS["dcp"].layouts[0]
SAVE = Save(5, b"run/s-5")
STATE = b'{"global_step": 5}'


def store_with(files: dict[str, bytes], save: str = "run/s-5") -> FakeStore:
    store = FakeStore()
    store.files = {f"{save}/{name}".encode(): content for name, content in files.items()}
    return store


def layout_of(*needs: Need, **rest: Any) -> Layout:  # noqa: ANN401  (any field of a row)
    return Layout(("s-N",), rb"s-([0-9]+)", needs)._replace(**rest)


@pytest.mark.parametrize(
    ("files", "lacking"),
    [
        ({"trainer_state.json": STATE}, None),
        ({"trainer_state.json": STATE[:-1]}, "trainer_state.json is cut off"),
        ({"trainer_state.json": b""}, "trainer_state.json is cut off"),
        ({"trainer_state.json": b'{"global_step": 6'}, "trainer_state.json is cut off"),
        ({"weights": b"x"}, "trainer_state.json is not there"),
        ({}, "trainer_state.json is not there"),
        (
            {"trainer_state.json": STATE, "checkpoint-is-incomplete.txt": b""},
            "checkpoint-is-incomplete.txt is there",
        ),
    ],
)
def test_an_hf_save_is_complete_when_its_state_is_whole(files: dict[str, bytes], lacking: str | None) -> None:
    """watch.2, watch.4."""
    assert why_incomplete(store_with(files), HF, SAVE) == lacking


def test_a_pre_emption_save_that_begins_between_two_looks_is_not_taken_for_complete() -> None:
    """watch.2: the state is read before the sentinel is looked for."""

    class Racing(FakeStore):
        def exists(self, path: bytes) -> bool:
            found = super().exists(path)
            self.files[SAVE.path + b"/checkpoint-is-incomplete.txt"] = b""
            self.files[SAVE.path + b"/trainer_state.json"] = STATE
            return found

    assert why_incomplete(Racing(), HF, SAVE) is not None


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        (b'{"global_step": 6}', "global_step differs from the step in the name of the folder: 6"),
        (b'{"global_step": true}', "no 64-bit integer global_step"),
        (b"{}", "no 64-bit integer global_step"),
        (b"[]", "not an object"),
    ],
)
def test_a_document_that_can_never_become_right_is_an_error_that_names_the_file(state: bytes, fault: str) -> None:
    """watch.4."""
    with pytest.raises(FormatError) as caught:
        why_incomplete(store_with({"trainer_state.json": state}), HF, SAVE)
    assert str(caught.value) == f"trainer_state.json: {fault}"


def test_a_state_that_is_not_a_regular_file_is_an_error() -> None:
    """watch.4."""
    with pytest.raises(FormatError, match=r"^trainer_state.json: not a regular file"):
        why_incomplete(store_with({"trainer_state.json/x": b""}), HF, SAVE)


@pytest.mark.parametrize(
    ("files", "lacking"),
    [
        ({".metadata": b"x"}, None),
        ({".metadata": b""}, ".metadata is empty"),
        ({".metadata.tmp": b"x"}, ".metadata is not there"),
        ({"__0.metadata": b"x"}, ".metadata is not there"),
        ({"model/.metadata": b"x"}, ".metadata is not there"),
        ({".metadata": b"x", "metadata.json": b"{}"}, "metadata.json is there"),
        ({".metadata": b"x", "common.pt": b"x"}, "common.pt is there"),
        ({".metadata": b"x", "modelopt_state/x": b"x"}, "modelopt_state is there"),
    ],
)
def test_a_dcp_save_is_complete_when_its_metadata_has_content_and_it_is_not_megatrons(
    files: dict[str, bytes], lacking: str | None
) -> None:
    """watch.2, watch.3: a power loss leaves .metadata there empty."""
    assert why_incomplete(store_with(files), DCP, SAVE) == lacking


@pytest.mark.parametrize(
    ("content", "lacking"),
    [
        (b"", "a.json is cut off"),
        (b'{"key": null}', "a.json has no key"),
        (b"{}", "a.json has no key"),
        (b'{"key": 0}', None),
        (b'{"key": 1, "gone": true}', "a.json says that the save is going to be removed (gone)"),
        (b'{"key": 1, "gone": false}', None),
    ],
)
def test_json_is_asked_for_its_keys(content: bytes, lacking: str | None) -> None:
    """watch.2."""
    layout = layout_of(Need(b"a.json", Check.JSON, set_key="key", unset_key="gone"))
    assert why_incomplete(store_with({"a.json": content}), layout, SAVE) == lacking


def test_a_zip_is_whole_with_its_last_byte_and_not_before() -> None:
    """watch.2: a file that grows in its place."""
    layout = layout_of(Need(ITSELF, Check.ZIP))
    whole = torch_zip(b"x" * 300)
    for cut in range(len(whole)):
        store = FakeStore()
        store.files[SAVE.path] = whole[:cut]
        assert why_incomplete(store, layout, SAVE), cut
    store.files[SAVE.path] = whole
    assert why_incomplete(store, layout, SAVE) is None
    store.files[SAVE.path] = whole + b"x"
    assert why_incomplete(store, layout, SAVE)


def test_a_file_that_torch_did_not_write_is_named() -> None:
    """watch.8."""
    layout = layout_of(Need(ITSELF, Check.ZIP))
    store = FakeStore()
    store.files[SAVE.path] = pickle.dumps("old") * 20
    assert why_incomplete(store, layout, SAVE) == "s-5 does not begin as a file of torch.save"


def test_a_distributed_checkpoint_has_every_byte_that_its_metadata_names() -> None:
    """watch.2."""
    layout = layout_of(Need(b".metadata", Check.DCP))
    metadata = pickle.dumps(Metadata({"__0_0.distcp": 10, "deep/__1_0.distcp": 20}), protocol=4)
    files = {".metadata": metadata, "__0_0.distcp": bytes(10), "deep/__1_0.distcp": bytes(20)}
    assert why_incomplete(store_with(files), layout, SAVE) is None
    assert why_incomplete(store_with({**files, "deep/__1_0.distcp": bytes(19)}), layout, SAVE) == (
        ".metadata names deep/__1_0.distcp, which has 19 of 20 bytes"
    )
    del files["deep/__1_0.distcp"]
    assert why_incomplete(store_with(files), layout, SAVE) == ".metadata names deep/__1_0.distcp, which is not there"
    assert why_incomplete(store_with({**files, ".metadata": metadata[:-5]}), layout, SAVE) == (
        f".metadata is not readable: cut off: {len(metadata) - 5} bytes"
    )


def test_a_name_in_the_metadata_that_no_file_can_have_is_not_there() -> None:
    """watch.2: a lone surrogate, which is not UTF-8."""
    layout = layout_of(Need(b".metadata", Check.DCP))
    metadata = pickle.dumps(Metadata({"\ud800": 1}), protocol=4)
    assert (
        why_incomplete(store_with({".metadata": metadata}), layout, SAVE)
        == ".metadata names \ud800, which is not there"
    )


def test_a_path_in_the_metadata_is_read_as_verify_reads_it() -> None:
    """watch.2, verify.2"""
    layout = layout_of(Need(b".metadata", Check.DCP))
    metadata = pickle.dumps(Metadata({"./deep//__0_0.distcp": 10}), protocol=4)
    assert why_incomplete(store_with({".metadata": metadata, "deep/__0_0.distcp": bytes(10)}), layout, SAVE) is None
    metadata = pickle.dumps(Metadata({"../s-4/__0_0.distcp": 10}), protocol=4)
    assert why_incomplete(store_with({".metadata": metadata}), layout, SAVE) == (
        ".metadata names a file outside its folder: ../s-4/__0_0.distcp"
    )


def test_metadata_that_is_too_long_to_be_read_is_complete_when_it_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """watch.2: its size is bounded by what a scan may cost."""
    monkeypatch.setattr(dcp_metadata, "MAX_BYTES", 10)
    layout = layout_of(Need(b".metadata", Check.DCP))
    assert why_incomplete(store_with({".metadata": b"x" * 11}), layout, SAVE) is None
    assert why_incomplete(store_with({".metadata": b"x" * 10}), layout, SAVE)


def test_an_index_needs_every_file_that_it_names_whole() -> None:
    """watch.2."""
    layout = layout_of(Need(b"w.index.json", Check.INDEX))
    index = json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}).encode()
    files = {"w.index.json": index, "1.safetensors": safetensors(8), "2.safetensors": safetensors(8)}
    assert why_incomplete(store_with(files), layout, SAVE) is None
    assert why_incomplete(store_with({**files, "2.safetensors": safetensors(8)[:-1]}), layout, SAVE)
    assert why_incomplete(store_with({**files, "2.safetensors": b"abc"}), layout, SAVE)
    assert why_incomplete(store_with({**files, "w.index.json": index[:-1]}), layout, SAVE)
    assert (
        why_incomplete(store_with({**files, "w.index.json": b"{}"}), layout, SAVE) == "w.index.json has no weight_map"
    )
    del files["1.safetensors"]
    assert why_incomplete(store_with(files), layout, SAVE) == "w.index.json names 1.safetensors, which is not there"


@pytest.mark.parametrize(
    ("ranks", "names", "complete"),
    [
        (None, ["m_world_size_2_rank_0.pt", "m_world_size_2_rank_1.pt"], True),
        (None, ["m_world_size_2_rank_0.pt"], False),
        (None, ["rank_0.pt", "rank_1.pt"], True),
        (None, [], False),
        (2, ["rank_0.pt", "rank_1.pt"], True),
        (3, ["rank_0.pt", "rank_1.pt"], False),
        (1, ["rank_0.pt", "rank_1.pt"], False),
    ],
)
def test_the_files_of_the_ranks_are_counted(ranks: int | None, names: list[str], complete: bool) -> None:  # noqa: FBT001
    """watch.2."""
    layout = layout_of(Need(b"*.pt", Check.RANKS), ranks=ranks)
    assert (why_incomplete(store_with(dict.fromkeys(names, b"x")), layout, SAVE) is None) is complete


def test_an_empty_file_of_a_rank_is_not_complete() -> None:
    """watch.2: it has been created, and not yet written."""
    layout = layout_of(Need(b"*.pt", Check.RANKS))
    assert why_incomplete(store_with({"rank_0.pt": b""}), layout, SAVE) == "rank_0.pt is empty"


@pytest.mark.parametrize(
    ("content", "exact", "complete"),
    [
        (None, False, False),
        (b"", False, False),
        (b"4", False, False),
        (b"5", False, True),
        (b"5\n", True, True),
        (b"6", False, True),
        (b"6", True, False),
        (b"s-5", True, True),
        (b"s-6", False, False),
        (b"release", False, False),
    ],
)
def test_a_tracker_names_the_save(content: bytes | None, exact: bool, complete: bool) -> None:  # noqa: FBT001
    """watch.2: by its step, or by its name."""
    store = store_with({"a": b"x"})
    if content is not None:
        store.files[b"run/latest"] = content
    layout = layout_of(Need(b"a", Check.ANY), tracker=Tracker(b"latest", exact=exact))
    assert (why_incomplete(store, layout, SAVE) is None) is complete


@pytest.mark.parametrize(
    ("beside", "complete"),
    [("s-5.tmp-1", False), ("s-50.tmp-1", True), ("s-5", True), ("s-5.tmp-1/x", False)],
)
def test_what_lies_beside_a_save_may_forbid_it(beside: str, complete: bool) -> None:  # noqa: FBT001
    """watch.2."""
    store = store_with({"a": b"x"})
    store.files[f"run/{beside}".encode()] = b""
    layout = layout_of(Need(b"a", Check.ANY), forbids=(b"../{}.tmp*",))
    assert (why_incomplete(store, layout, SAVE) is None) is complete


def test_a_file_may_be_asked_for_in_each_folder() -> None:
    """watch.2: the roles of a reinforcement learning run."""
    layout = layout_of(Need(b"*/done.json", Check.JSON, each_folder=True))
    assert why_incomplete(store_with({"actor/done.json": b"{}", "critic/done.json": b"{}"}), layout, SAVE) is None
    assert why_incomplete(store_with({"actor/done.json": b"{}", "critic/x": b""}), layout, SAVE) == (
        "critic/done.json is not there"
    )


def test_a_save_in_the_root_itself_is_looked_at_there() -> None:
    """watch.1."""
    store = FakeStore()
    store.files = {b"s-5/a": b"x", b"latest": b"5", b"s-5.tmp": b""}
    layout = layout_of(Need(b"a", Check.ANY), tracker=Tracker(b"latest"))
    assert why_incomplete(store, layout, Save(5, b"s-5")) is None
    assert why_incomplete(store, layout._replace(forbids=(b"../{}.tmp",)), Save(5, b"s-5")) == "../s-5.tmp is there"
