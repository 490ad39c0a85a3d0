"""Reads pickles of protocol 2 to 5 (what Python 3 writes) without running anything that is in them (verify.5).

Python's own unpickler calls what a file names, and even with that taken away a short file can fill its
memory, overflow its stack or keep it busy for ever. This reader imports nothing and calls nothing, and
what it reads is only what a caller may ask for: the attributes of records, dictionaries, text and numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from publish.domain.errors import FormatError
from publish.domain.pickle_machine import Machine


def load(data: bytes) -> object:
    """The object that a pickle holds. Bytes after its end are not looked at.

    A Record; a dictionary as a list of its keys and values in alternation; a tuple of two with a dictionary in
    it; a str, an int or None; OTHER for all else. Objects may be shared and may hold themselves.
    Raises FormatError for what is not a whole pickle of plain data.
    """
    if not data:
        raise FormatError("empty")
    if data[0] != _PROTO:
        raise FormatError("not a pickle")
    machine = Machine(data)
    try:
        _run(machine)
        return machine.stack.pop()
    except IndexError as error:
        raise machine.malformed() from error
    except (KeyError, UnicodeDecodeError) as error:
        raise FormatError(f"not a pickle: byte {machine.at - 1}") from error


def _run(machine: Machine) -> None:
    """Runs all opcodes. Those that make up half of a file are done here, without a call."""
    data, memo, stack, at = machine.data, machine.memo, machine.stack, 0
    try:
        while (code := data[at]) != _STOP:
            at += 1
            if code == _MEMOIZE:
                memo.append(stack[-1])
            elif code == _LONG_GET:
                # One that is cut off is found out at the next opcode.
                stack.append(memo[int.from_bytes(data[at : at + 4], "little")])
                at += 4
            elif code == _SHORT_GET:
                stack.append(memo[data[at]])
                at += 1
            elif code == _SHORT_NUMBER:
                stack.append(data[at])
                at += 1
            else:
                machine.at = at
                _OPERATIONS[code](machine)
                at, stack = machine.at, machine.stack
    finally:
        machine.at = max(machine.at, at)


_PROTO = 0x80
_STOP = ord(".")
_MEMOIZE = 0x94
_SHORT_GET = ord("h")
_SHORT_NUMBER = ord("K")
_LONG_GET = ord("j")

_Operation = Callable[[Machine], None]
_OPERATIONS: dict[int, _Operation] = {
    _PROTO: Machine.protocol,
    0x95: Machine.frame,
    ord("("): Machine.mark,
    ord("0"): Machine.pop,
    ord("1"): Machine.pop_mark,
    ord("2"): lambda machine: machine.stack.append(machine.top()),
    ord("N"): lambda machine: machine.stack.append(None),
    0x88: Machine.other,  # true
    0x89: Machine.other,  # false
    ord("G"): lambda machine: machine.other(8),
    ord("M"): lambda machine: machine.stack.append(machine.number(2)),
    ord("J"): lambda machine: machine.integer(4),
    0x8A: lambda machine: machine.integer(machine.number(1)),
    0x8B: lambda machine: machine.integer(machine.number(4)),
    0x8C: lambda machine: machine.text(machine.number(1)),
    ord("X"): lambda machine: machine.text(machine.number(4)),
    0x8D: lambda machine: machine.text(machine.number(8)),
    ord("C"): lambda machine: machine.other(machine.number(1)),
    ord("B"): lambda machine: machine.other(machine.number(4)),
    0x8E: lambda machine: machine.other(machine.number(8)),
    0x96: lambda machine: machine.other(machine.number(8)),  # a bytearray
    ord("q"): lambda machine: machine.put(machine.number(1)),
    ord("r"): lambda machine: machine.put(machine.number(4)),
    0x85: lambda machine: machine.short_tuple(1),
    0x86: lambda machine: machine.short_tuple(2),
    0x87: lambda machine: machine.short_tuple(3),
    ord("t"): lambda machine: machine.tuple(machine.to_mark()),
    ord(")"): Machine.other,
    ord("]"): Machine.other,
    ord("a"): Machine.append,
    ord("e"): Machine.drop,
    ord("l"): Machine.collection,
    0x8F: Machine.other,  # an empty set
    0x90: Machine.drop,
    0x91: Machine.collection,  # a frozenset
    ord("}"): Machine.empty_dictionary,
    ord("s"): Machine.set_item,
    ord("u"): Machine.set_items,
    ord("d"): Machine.dictionary,
    ord("c"): Machine.class_in_text,
    0x93: Machine.class_on_stack,
    ord("R"): lambda machine: machine.make(1),
    0x81: lambda machine: machine.make(1),
    0x92: lambda machine: machine.make(2),
    ord("b"): Machine.build,
}
