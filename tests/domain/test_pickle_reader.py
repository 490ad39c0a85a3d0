"""verify.5: what the reader keeps of a pickle, and what it refuses."""

from __future__ import annotations

import collections
import datetime as dt
import io
import pathlib
import pickle
import pickletools
from typing import Self

import pytest

from publish.domain.errors import FormatError
from publish.domain.pickle_machine import OTHER, Record
from publish.domain.pickle_reader import load

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
def test_what_is_not_a_pickle_is_refused_with_the_reason(content: bytes, why: str | None) -> None:
    if why is None:
        load(content)
    else:
        with pytest.raises(FormatError) as caught:
            load(content)
        assert str(caught.value) == why
