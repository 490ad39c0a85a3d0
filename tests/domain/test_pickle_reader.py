"""verify.5: no code of a file is run, and no file costs more than its size justifies."""

from __future__ import annotations

import builtins
import collections
import datetime as dt
import io
import os
import pathlib
import pickle
import pickletools
import sys
import tracemalloc
from collections.abc import Callable
from typing import NoReturn, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publish.domain.errors import FormatError
from publish.domain.pickle_machine import MAX_DEPTH, OTHER, Record
from publish.domain.pickle_reader import load
from publish.domain.standard_library import STANDARD_LIBRARY
from tests.support.samples import SAMPLES, sample

PROTOCOLS = [2, 3, 4, 5]


class Thing:
    """Something of another package, as far as the reader knows."""

    def __init__(self, value: object) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Calls:
    """Pickled as a call with keyword arguments, which protocol 4 has an opcode for."""

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, int]]:
        return (1,), {"a": 1}

    def __new__(cls, *args: object, **named: object) -> Self:
        return super().__new__(cls)


def state_of(value: object) -> object:
    assert isinstance(value, Record)
    return value.state


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_of_use_is_kept(protocol: int) -> None:
    values = {
        "text": "ä\ud800",
        "numbers": {0: 1, 255: -1, 256: 65535, -(2**31): 2**31, 2**63: -(2**63)},
        "nothing": None,
        "record": Thing(7),
    }
    read = load(pickle.dumps(values, protocol))
    assert isinstance(read, list)
    assert read[:7] == [
        "text",
        "ä\ud800",
        "numbers",
        [0, 1, 255, -1, 256, 65535, -(2**31), 2**31, 2**63, -(2**63)],
        "nothing",
        None,
        "record",
    ]
    assert state_of(read[7]) == ["value", 7]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_state_of_an_object_with_slots_is_kept(protocol: int) -> None:
    assert state_of(load(pickle.dumps(Slotted(7), protocol))) == (None, ["value", 7])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        [1],
        [],
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        {1, 2},
        set(),
        frozenset({1}),
        1.5,
        True,
        False,
        2**100,
        1 << 5000,
        3 + 4j,
        slice(1),
        range(3),
        pathlib.PurePosixPath("a/b"),
        dt.timedelta(1),
        collections.deque([1]),
    ],
    ids=repr,
)
def test_plain_values_that_say_nothing_are_read(protocol: int, value: object) -> None:
    assert load(pickle.dumps(value, protocol)) is OTHER


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("value", [b"", b"abc", bytes(300), bytearray(b"abc")], ids=repr)
def test_bytes_are_read(protocol: int, value: object) -> None:
    if isinstance(value, bytes) or protocol == 5:
        assert load(pickle.dumps(value, protocol)) is OTHER


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "value",
    [collections.OrderedDict(a=1), collections.defaultdict(int, a=1)],
    ids=repr,
)
def test_mappings_of_collections_are_read_as_dictionaries(protocol: int, value: object) -> None:
    assert load(pickle.dumps(value, protocol)) == ["a", 1]


@pytest.mark.parametrize("pickler", [pickle.Pickler, pickle._Pickler])
def test_the_bigger_opcodes_of_long_values_are_read(pickler: type[pickle.Pickler]) -> None:
    buffer = io.BytesIO()
    one = pickler(buffer, 4)
    one.fast = True
    one.dump({"x" * 300: "y" * 70_000, "list": [bytes(300), 1.5, Calls()]})
    read = load(buffer.getvalue())
    assert isinstance(read, list)
    assert read[:2] == ["x" * 300, "y" * 70_000]


def test_dictionaries_made_in_one_go_and_item_by_item_are_read() -> None:
    assert load(b"\x80\x04(K\x01K\x02d.") == [1, 2]
    assert load(b"\x80\x04}K\x01K\x02sK\x03K\x04s.") == [1, 2, 3, 4]
    assert load(b"\x80\x04(K\x01l.") is OTHER
    assert load(b"\x80\x04]K\x01aN0.") is OTHER
    assert load(b"\x80\x04K\x01(K\x021.") == 1
    assert load(b"\x80\x04K\x01(0.") == 1
    assert load(b"\x80\x04}2N0.") == []
    assert load(b"\x80\x04N)b.") is None
    assert load(b"\x80\x04NK\x01K\x02s.") is None
    assert load(b"\x80\x04\x8d" + (2).to_bytes(8, "little") + b"ab.") == "ab"
    assert load(b"\x80\x04\x8e" + (2).to_bytes(8, "little") + b"ab.") is OTHER
    assert load(b"\x80\x02Nq\x05h\x05.") is None
    assert load(b"\x80\x02Nr\x05\0\0\0K\x01j\x05\0\0\0.") is None
    assert load(b"\x80\x02K\x01q\x00K\x02q\x00h\x00.") == 2


def test_an_object_in_itself_is_read() -> None:
    own: dict[str, object] = {}
    own["self"] = own
    read = load(pickle.dumps(own))
    assert isinstance(read, list)
    assert read[1] is read


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("optimized", [False, True])
def test_no_beginning_of_a_pickle_is_whole(protocol: int, optimized: bool) -> None:  # noqa: FBT001  (a parameter of the test)
    content = pickle.dumps({"a": [Thing(1), (2, 3.5), "x", 300, -1, 2**40], 5: {"b": Slotted(None)}}, protocol)
    content = pickletools.optimize(content) if optimized else content
    load(content)
    for size in range(len(content)):
        with pytest.raises(FormatError, match=r"^(?:empty|cut off: |not a pickle)"):
            load(content[:size])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"{}", "not a pickle"),
        (bytes(100), "not a pickle"),
        (b"\x80\x06N.", "a pickle of a protocol that is not known: 6"),
        (b"\x80\x04N", "cut off: 3 bytes"),
        (b"\x80\x04X\xff\xff\xff\xff.", "cut off: 8 bytes"),
        (b"\x80\x04B\xff\xff\xff\xff.", "cut off: 8 bytes"),
        (b"\x80\x04\x8b\xff\xff\xff\xff.", "cut off: 8 bytes"),
        (b"\x80\x04cos.system", "cut off: 12 bytes"),
        (b"\x80\x04K", "cut off: 3 bytes"),
        (b"\x80\x04N\x94j\0\0", "cut off: 7 bytes"),
        (b"\x80\x04G123456", "cut off: 9 bytes"),
        (b"\x80\x04j\0\0\0\1.", "not a pickle: byte 2"),
        (b"\x80\x04\xffN.", "not a pickle: byte 2"),
        (b"\x80\x04P1\n.", "not a pickle: byte 2"),
        (b"\x80\x04Q.", "not a pickle: byte 2"),
        (b"\x80\x04\x82\x01.", "not a pickle: byte 2"),
        (b"\x80\x04ios\nsystem\n.", "not a pickle: byte 2"),
        (b"\x80\x04X\x01\0\0\0\xff.", "not a pickle: byte 7"),
        (b"\x80\x04\x85N.", "not a pickle: byte 2"),
        (b"\x80\x04N\x86N.", "not a pickle: byte 3"),
        (b"\x80\x04tN.", "not a pickle: byte 2"),
        (b"\x80\x04N)NR.", None),
        (b"\x80\x04)R.", "not a pickle: byte 3"),
        (b"\x80\x04h\x07.", "not a pickle: byte 2"),
        (b"\x80\x04(Nd.", "not a pickle: a key without a value at byte 4"),
        (b"\x80\x04NN\x93.", "not a pickle: a class without a name at byte 4"),
    ],
)
def test_what_is_not_a_pickle_is_said(content: bytes, why: str | None) -> None:
    if why is None:
        load(content)
    else:
        with pytest.raises(FormatError) as caught:
            load(content)
        assert str(caught.value) == why


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


SIZE = 50_000
ATTACKS: dict[str, bytes] = {
    # The three of verify.5, as keys of a dictionary where Python's reader must hash them.
    "a memo index of 40 million": b"Nr" + (40_000_000).to_bytes(4, "little"),
    "nested tuples as a key": b"})" + b"\x85" * (2 * SIZE) + b"Ns",
    "doubled tuples as a key": b"})" + b"2\x86" * 300 + b"Ns",
    "nested pairs with dictionaries": b"}" + b"}\x86" * SIZE,
    "doubled pairs with a dictionary": b"}" + b"2\x86}" * SIZE,
    "nested dictionaries": b"}N" * SIZE + b"}" + b"s" * SIZE,
    "nested lists": b"]" * SIZE + b"a" * (SIZE - 1),
    "nested lists by marks": b"(" * (MAX_DEPTH - 1) + b"l" * (MAX_DEPTH - 1),
    "nested states": b"ctorch\nx\n" + b"2)\x81" * SIZE + b"b" * SIZE,
    "marks": b"(" * SIZE,
    "dictionaries": b"}" * SIZE,
    "dictionaries in the memo": b"}\x94" * SIZE,
    "small dictionaries": b"}NNs" * SIZE,
    "sets": b"\x8f" * SIZE,
    "records": b"ctorch\nx\n" + b"2)\x81" * SIZE,
    "the memo": b"N" + b"\x94" * SIZE,
    "copies": b"N" + b"2" * SIZE,
    "one character of text": b"\x8c\x04\xf0\x9f\x98\x80" * (SIZE // 6),
    "long text without its end": b"X\xff\xff\xff\xff" + b"a" * SIZE,
    "a number of many digits": b"\x8b" + SIZE.to_bytes(4, "little") + b"\x7f" * SIZE,
    "one state for many records": b"}(" + b"K\x01N" * SIZE + b"u\x94" + b"ctorch\nx\n)\x81h\x00b" * (SIZE // 10),
    "names without end": b"c" * SIZE,
    "frames": (b"\x95" + b"\xff" * 8) * (SIZE // 9),
}


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
