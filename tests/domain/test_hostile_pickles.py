"""verify.5: no code of a file is run, and no file costs more than its size justifies."""

from __future__ import annotations

import builtins
import os
import pickle
import sys
import tracemalloc
from collections.abc import Callable
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.errors import FormatError
from publish.domain.pickle_machine import MAX_DEPTH, OTHER, Record
from publish.domain.pickle_reader import load
from publish.domain.standard_library import STANDARD_LIBRARY
from tests.support.hostile_pickles import ATTACKS
from tests.support.samples import SAMPLES, sample

PROTOCOLS = [2, 3, 4, 5]


def call(module: str, name: str, protocol: int = 4) -> bytes:
    """A pickle that calls `module.name("")`."""
    if protocol < 4:
        return b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"X\0\0\0\0\x85R."
    texts = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"\x80\x04" + texts + b"\x93\x8c\x00\x85R."


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("builtins", "dict.fromkeys"),
        ("collections", "namedtuple"),
        ("pathlib", "os.system"),
        ("importlib", "import_module"),
        ("xml.etree", "x"),
        ("functools", "partial"),
        ("copyreg", "_reconstructor"),
        ("__builtin__", "eval"),
        ("datetime", "sys.exit"),
    ],
)
def test_every_other_name_of_the_standard_library_is_refused(protocol: int, module: str, name: str) -> None:
    with pytest.raises(FormatError) as caught:
        load(call(module, name, protocol))
    assert str(caught.value) == f"a pickle that would run Python's own code: {module}.{name}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("module", "name"), [("torch", "load"), ("torch.os", "system"), ("nt_tools", "x"), ("", ""), ("__main__", "Info")]
)
def test_a_name_of_another_package_is_a_record_that_does_nothing(protocol: int, module: str, name: str) -> None:
    assert isinstance(load(call(module, name, protocol)), Record)


def test_a_size_of_torch_is_known() -> None:
    assert load(call("torch", "Size")) is OTHER


def test_the_names_of_this_python_are_the_standard_library() -> None:
    assert sys.stdlib_module_names <= STANDARD_LIBRARY


def test_nothing_is_imported_or_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_named: object) -> NoReturn:
        raise AssertionError

    pickles = [path.read_bytes() for path in SAMPLES.rglob("*metadata")]
    pickles += [
        call(name, "y", protocol) for name in ("os", "a_package_that_is_not_installed.x") for protocol in PROTOCOLS
    ]
    before = set(sys.modules)
    with monkeypatch.context() as patch:
        for module, name in ((os, "system"), (builtins, "eval"), (builtins, "exec"), (builtins, "compile")):
            patch.setattr(module, name, refuse)
        # The last one, since setattr itself imports.
        patch.setattr(builtins, "__import__", refuse)
        outcomes = [_outcome(content) for content in pickles]
    assert sum(isinstance(outcome, FormatError) for outcome in outcomes) == len(PROTOCOLS)
    assert set(sys.modules) == before


def _outcome(content: bytes) -> object:
    try:
        return load(content)
    except FormatError as fault:
        return fault


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_file_costs_no_more_than_its_size_justifies(name: str) -> None:
    content = b"\x80\x04" + ATTACKS[name] + b"."
    tracemalloc.start()
    try:
        _outcome(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The longest list grows by an eighth, and is held twice while it does.
    assert peak < 64 * len(content) + 2**16


@pytest.mark.parametrize("name", ATTACKS)
def test_twice_the_file_takes_about_twice_as_many_steps(name: str) -> None:
    content = ATTACKS[name]
    assert _opcodes(b"\x80\x04" + content + b".") <= 3 * (len(content) + 3)


def _opcodes(content: bytes) -> int:
    """How many lines of the reader run."""
    lines = 0

    def count(_frame: object, event: str, _argument: object) -> Callable[..., object]:
        nonlocal lines
        lines += event == "call"
        return count

    sys.setprofile(count)
    try:
        _outcome(content)
    finally:
        sys.setprofile(None)
    return lines


def test_marks_are_counted() -> None:
    with pytest.raises(FormatError, match=f"^nested deeper than {MAX_DEPTH}$"):
        load(b"\x80\x04" + b"(" * (MAX_DEPTH + 1))


def test_a_memo_index_above_the_size_of_the_file_is_refused() -> None:
    with pytest.raises(FormatError, match=r"^a memo index that no pickle of this size has: 40000000$"):
        load(b"\x80\x02Nr" + (40_000_000).to_bytes(4, "little") + b".")


METADATA = sample("dcp/step-200/.metadata")


@given(st.binary(max_size=60))
def test_no_content_makes_the_reader_fail(content: bytes) -> None:
    _outcome(content)
    _outcome(b"\x80\x04" + content)


@given(st.lists(st.tuples(st.integers(0, len(METADATA) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_no_change_of_a_real_file_makes_the_reader_fail(changes: list[tuple[int, int]]) -> None:
    content = bytearray(METADATA)
    for at, byte in changes:
        content[at] = byte
    _outcome(bytes(content))


@pytest.mark.parametrize(
    ("begin", "unit"),
    [(b"", b"}"), (b"", b"}\x94"), (b"", b"(d"), (b"", b"N}\x86"), (b"ctorch\nx\n", b"2)\x81")],
    ids=["dictionaries", "in the memo", "by marks", "pairs", "records"],
)
def test_more_objects_than_the_file_is_long_for_are_refused(begin: bytes, unit: bytes) -> None:
    """verify.5: one byte of the file may cost 64 of memory"""
    with pytest.raises(FormatError, match="more objects than a pickle of this size has"):
        load(b"\x80\x04" + begin + unit * 300_000 + b".")


def test_the_small_dictionaries_of_a_real_pickler_are_not_an_attack() -> None:
    """verify.6: 100,000 in any file, and in a long one as many as are worth writing"""
    assert load(pickle.dumps([{} for _ in range(100_000)])) is OTHER
    states = load(pickle.dumps({number: {"step": number} for number in range(300_000)}))
    assert isinstance(states, list)
    assert len(states) == 600_000
