"""Reads pickles of protocol 2 to 5 (what Python 3 writes) without running anything that is in them.

Python's own unpickler calls what a file names, and even with that taken away a short file can fill its
memory, overflow its stack or keep it busy for ever. This reader imports nothing, calls nothing and never
walks, hashes or compares what it has read. Each opcode costs a bounded amount of time and memory, and
what it reads is only what a caller may ask for: the attributes of records, dictionaries, text and numbers.
The opcodes: Lib/pickletools.py of CPython.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from publish.domain.errors import FormatError
from publish.domain.standard_library import STANDARD_LIBRARY

MAX_PROTOCOL: Final = 5
# A pickler in Python ends at its recursion limit, which is 1,000.
MAX_DEPTH: Final = 10_000

_MAPPINGS = frozenset({"dict", "OrderedDict", "defaultdict", "Counter"})
_PLAIN = {
    "builtins": _MAPPINGS
    | {"list", "tuple", "set", "frozenset", "slice", "range", "object"}
    | {"bool", "int", "float", "complex", "str", "bytes", "bytearray"},
    "collections": _MAPPINGS | {"deque"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
}
_PATHS = {"Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath", "PureWindowsPath"}
_PLAIN |= {"pathlib": _PATHS, "pathlib._local": _PATHS}

# No size or position in a file has more bytes than this as a signed integer.
_LONGEST_NUMBER: Final = 9


class _Other:
    """What the reader passes over: a list, a set, bytes, most tuples."""


class _Class:
    """The name of a class or a function, which is never looked up."""


OTHER: Final = _Other()
_RECORD_CLASS: Final = _Class()
_MAPPING_CLASS: Final = _Class()
_PLAIN_CLASS: Final = _Class()


class Record:
    """An object of some class: nothing but the state that it was given."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: object = None


def load(data: bytes) -> object:
    """The object that a pickle holds. Bytes after its end are not looked at.

    A Record; a dictionary as the list of its keys and values by turns; a tuple of two with a dictionary in
    it; a str, an int or None; OTHER for all else. Objects may be shared and may hold themselves.
    Raises FormatError for what is not a whole pickle of plain data.
    """
    return _Reader(data).run()


class _Reader:
    """The stack machine. `marked` holds the stacks below the marks."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[object] = []
        self.marked: list[list[object]] = []
        self.memo: list[object] = []

    def run(self) -> object:
        """The object on the stack at the end."""
        data = self.data
        if not data:
            raise FormatError("empty")
        if data[0] != _PROTO:
            raise FormatError("not a pickle")
        try:
            self._to_stop()
            return self.stack.pop()
        except IndexError as error:
            raise self._broken() from error
        except (KeyError, UnicodeDecodeError) as error:
            raise FormatError(f"not a pickle: byte {self.at - 1}") from error

    def _to_stop(self) -> None:
        """Runs all opcodes. The four that make up half of a file are done here, without a call."""
        data, memo, stack, at = self.data, self.memo, self.stack, 0
        try:
            while (code := data[at]) != _STOP:
                at += 1
                if code == _MEMOIZE:
                    memo.append(stack[-1])
                elif code == _SHORT_GET:
                    stack.append(memo[data[at]])
                    at += 1
                elif code == _SHORT_NUMBER:
                    stack.append(data[at])
                    at += 1
                elif code == _EMPTY_TUPLE:
                    stack.append(OTHER)
                else:
                    self.at = at
                    _OPERATIONS[code](self)
                    at, stack = self.at, self.stack
        finally:
            self.at = max(self.at, at)

    def _broken(self) -> FormatError:
        if self.at >= len(self.data):
            return FormatError(f"cut off: {len(self.data)} bytes")
        return FormatError(f"not a pickle: byte {self.at - 1}")

    def take(self, size: int) -> bytes:
        """The next bytes. Raises FormatError if there are fewer."""
        end = self.at + size
        taken = self.data[self.at : end]
        if len(taken) < size:
            raise FormatError(f"cut off: {len(self.data)} bytes")
        self.at = end
        return taken

    def number(self, size: int) -> int:
        """The next bytes as an unsigned number. Raises IndexError if there are fewer."""
        self.at = end = self.at + size
        if end > len(self.data):
            raise IndexError
        return int.from_bytes(self.data[end - size : end], "little")

    def line(self) -> str:
        """The text up to the next line feed."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise FormatError(f"cut off: {len(self.data)} bytes")
        text = self.data[self.at : end].decode()
        self.at = end + 1
        return text

    def top(self) -> object:
        """What was put on the stack last. Raises IndexError if there is nothing."""
        return self.stack[-1]

    def to_mark(self) -> list[object]:
        """What was put on the stack since the last mark."""
        items = self.stack
        self.stack = self.marked.pop()
        return items

    def mark(self) -> None:
        if len(self.marked) == MAX_DEPTH:
            raise FormatError(f"nested deeper than {MAX_DEPTH}")
        self.marked.append(self.stack)
        self.stack = []

    def pop(self) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.to_mark()

    def pop_mark(self) -> None:
        self.to_mark()

    def protocol(self) -> None:
        protocol = self.number(1)
        if protocol > MAX_PROTOCOL:
            raise FormatError(f"a pickle of a protocol that is not known: {protocol}")

    def frame(self) -> None:
        """How much to read ahead, which is all here."""
        self.number(8)

    def text(self, size: int) -> None:
        self.stack.append(self.take(size).decode("utf-8", "surrogatepass"))

    def other(self, size: int = 0) -> None:
        self.at += size
        if self.at > len(self.data):
            raise FormatError(f"cut off: {len(self.data)} bytes")
        self.stack.append(OTHER)

    def integer(self, size: int) -> None:
        if size > _LONGEST_NUMBER:
            self.other(size)
        else:
            self.stack.append(int.from_bytes(self.take(size), "little", signed=True))

    def put(self, index: int) -> None:
        # Picklers count the objects that they put there, of which none is shorter than a byte.
        if index > len(self.data):
            raise FormatError(f"a memo index that no pickle of this size has: {index}")
        missing = index + 1 - len(self.memo)
        if missing > 0:
            self.memo += [OTHER] * missing
        self.memo[index] = self.stack[-1]

    def get(self, index: int) -> None:
        self.stack.append(self.memo[index])

    def tuple(self, items: list[object]) -> None:
        """Keeps a tuple only if it may be the state of an object that has slots."""
        match items:
            case [_, list()]:
                self.stack.append(tuple(items))
            case _:
                self.stack.append(OTHER)

    def short_tuple(self, size: int) -> None:
        items = self.stack[-size:]
        if len(items) < size:
            raise self._broken()
        del self.stack[-size:]
        self.tuple(items)

    def drop(self) -> None:
        """Adds to a collection that is passed over."""
        self.to_mark()
        self.top()

    def append(self) -> None:
        self.stack.pop()
        self.top()

    def collection(self) -> None:
        self.to_mark()
        self.stack.append(OTHER)

    def dictionary(self) -> None:
        self.stack.append(self._items(self.to_mark()))

    def set_items(self) -> None:
        self._add(self._items(self.to_mark()))

    def set_item(self) -> None:
        value = self.stack.pop()
        self._add([self.stack.pop(), value])

    def _items(self, items: list[object]) -> list[object]:
        if len(items) % 2:
            raise FormatError(f"not a pickle: a key without a value at byte {self.at - 1}")
        return items

    def _add(self, items: list[object]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            target += items

    def class_in_text(self) -> None:
        module = self.line()
        self._class(module, self.line())

    def class_on_stack(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise FormatError(f"not a pickle: a class without a name at byte {self.at - 1}")
        self._class(module, name)

    def _class(self, module: str, name: str) -> None:
        if module.partition(".")[0] not in STANDARD_LIBRARY:
            self.stack.append(_PLAIN_CLASS if (module, name) == ("torch", "Size") else _RECORD_CLASS)
        elif name in _PLAIN.get(module, ()):
            self.stack.append(_MAPPING_CLASS if name in _MAPPINGS else _PLAIN_CLASS)
        else:
            raise FormatError(f"a pickle that would run Python's own code: {module[:100]}.{name[:100]}")

    def make(self, arguments: int) -> None:
        """An object of a class, for the arguments on the stack, which say nothing here."""
        if len(self.stack) <= arguments:
            raise self._broken()
        del self.stack[-arguments:]
        made = self.stack[-1]
        if made is _MAPPING_CLASS:
            self.stack[-1] = []
        elif made is _PLAIN_CLASS:
            self.stack[-1] = OTHER
        else:
            self.stack[-1] = Record()

    def build(self) -> None:
        state = self.stack.pop()
        made = self.stack[-1]
        if isinstance(made, Record):
            made.state = state


_PROTO: Final = 0x80
_STOP: Final = ord(".")
_MEMOIZE: Final = 0x94
_SHORT_GET: Final = ord("h")
_SHORT_NUMBER: Final = ord("K")
_EMPTY_TUPLE: Final = ord(")")

_Operation = Callable[[_Reader], None]
_OPERATIONS: Final[dict[int, _Operation]] = {
    _PROTO: _Reader.protocol,
    0x95: _Reader.frame,
    ord("("): _Reader.mark,
    ord("0"): _Reader.pop,
    ord("1"): _Reader.pop_mark,
    ord("2"): lambda reader: reader.stack.append(reader.top()),
    ord("N"): lambda reader: reader.stack.append(None),
    0x88: _Reader.other,  # true
    0x89: _Reader.other,  # false
    ord("G"): lambda reader: reader.other(8),
    ord("M"): lambda reader: reader.stack.append(reader.number(2)),
    ord("J"): lambda reader: reader.integer(4),
    0x8A: lambda reader: reader.integer(reader.number(1)),
    0x8B: lambda reader: reader.integer(reader.number(4)),
    0x8C: lambda reader: reader.text(reader.number(1)),
    ord("X"): lambda reader: reader.text(reader.number(4)),
    0x8D: lambda reader: reader.text(reader.number(8)),
    ord("C"): lambda reader: reader.other(reader.number(1)),
    ord("B"): lambda reader: reader.other(reader.number(4)),
    0x8E: lambda reader: reader.other(reader.number(8)),
    0x96: lambda reader: reader.other(reader.number(8)),  # a bytearray
    ord("j"): lambda reader: reader.get(reader.number(4)),
    ord("q"): lambda reader: reader.put(reader.number(1)),
    ord("r"): lambda reader: reader.put(reader.number(4)),
    0x85: lambda reader: reader.short_tuple(1),
    0x86: lambda reader: reader.short_tuple(2),
    0x87: lambda reader: reader.short_tuple(3),
    ord("t"): lambda reader: reader.tuple(reader.to_mark()),
    ord("]"): _Reader.other,
    ord("a"): _Reader.append,
    ord("e"): _Reader.drop,
    ord("l"): _Reader.collection,
    0x8F: _Reader.other,  # an empty set
    0x90: _Reader.drop,
    0x91: _Reader.collection,  # a frozenset
    ord("}"): lambda reader: reader.stack.append([]),
    ord("s"): _Reader.set_item,
    ord("u"): _Reader.set_items,
    ord("d"): _Reader.dictionary,
    ord("c"): _Reader.class_in_text,
    0x93: _Reader.class_on_stack,
    ord("R"): lambda reader: reader.make(1),
    0x81: lambda reader: reader.make(1),
    0x92: lambda reader: reader.make(2),
    ord("b"): _Reader.build,
}
