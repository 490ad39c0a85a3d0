"""verify.7: a save is judged alike in every store."""

from __future__ import annotations

import pytest

from publish.domain.wholeness import Fault, check_save
from tests.support.retrying import retrying
from tests.support.samples import WHOLE_SAVES, sample_files
from tests.support.stores import FreshRoot


def _fill(fresh_root: FreshRoot, files: dict[bytes, bytes], save: str) -> None:
    for path, content in files.items():
        fresh_root.fill(f"{save}/{path.decode()}", body=content)


@pytest.mark.parametrize("name", WHOLE_SAVES)
def test_a_save_that_a_framework_wrote_is_whole(fresh_root: FreshRoot, name: str) -> None:
    """verify.6"""
    save = f"exec/{name}"
    _fill(fresh_root, sample_files(name), save)
    assert check_save(retrying(fresh_root.store()), save.encode(), map) == ([], [])


def test_a_shard_that_is_missing_and_one_that_is_cut_off_are_found(fresh_root: FreshRoot) -> None:
    """verify.6"""
    files = sample_files("dcp/step-200") | {b"x.safetensors": b"", b"y/optimizer.pt": b"PK\3\4" + bytes(100_000)}
    del files[b"__1_0.distcp"]
    _fill(fresh_root, files, "exec/save")
    assert check_save(retrying(fresh_root.store()), b"exec/save", map).faults == [
        Fault(b".metadata", "it names a file that is not there: __1_0.distcp"),
        Fault(b"x.safetensors", "cut off: 0 bytes"),
        Fault(b"y/optimizer.pt", "cut off, or followed by something: no directory at its end"),
    ]


def test_a_save_that_is_one_file_is_judged_and_one_that_is_gone_is_not_there(fresh_root: FreshRoot) -> None:
    fresh_root.fill("exec/step=5.ckpt", body=b"text")
    fresh_root.fill("exec/step=6.ckpt", body=b"PK")
    store = retrying(fresh_root.store())
    assert check_save(store, b"exec/step=5.ckpt", map).is_whole
    assert check_save(store, b"exec/step=6.ckpt", map).faults == [Fault(b"step=6.ckpt", "cut off: 2 bytes")]
    assert check_save(store, b"exec/step=7.ckpt", map).faults == [Fault(b"", "not there")]
