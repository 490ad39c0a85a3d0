"""Pickles that cost a careless reader time, memory or its stack (verify.5)."""

from __future__ import annotations

from publish.domain.pickle_machine import MAX_DEPTH

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
