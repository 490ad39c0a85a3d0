"""The stack machine that a pickle is a program for, without the calls.

Each operation costs a bounded amount of time and memory, and none walks, hashes or compares a value.
The operations: Lib/pickletools.py of CPython.
"""

from __future__ import annotations

from publish.domain.errors import FormatError
from publish.domain.pickle_names import Kind, kind_of

MAX_PROTOCOL = 5
# A pickler in Python ends at its recursion limit, which is 1,000.
MAX_DEPTH = 10_000

# A dictionary may be one byte of a pickle, and takes 64 bytes of memory. What a pickler writes for each, keys and
# values included, is longer than this, except perhaps in a small file.
_BYTES_EACH = 8
_ALWAYS_ALLOWED = 100_000

# No size or position in a file has more bytes than this as a signed integer.
_LONGEST_NUMBER = 9


class _Other:
    """What the reader skips: a list, a set, bytes, most tuples."""


OTHER = _Other()


class Record:
    """An object of some class: nothing but the state that it was given."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: object = None


class Machine:
    """The stack machine. `marked` holds the stacks below the marks."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[object] = []
        self.marked: list[list[object]] = []
        self.memo: list[object] = []
        self._objects_left = _ALWAYS_ALLOWED + len(data) // _BYTES_EACH

    def malformed(self) -> FormatError:
        """What is wrong where the machine stopped."""
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
        """Begins a new stack."""
        if len(self.marked) == MAX_DEPTH:
            raise FormatError(f"nested deeper than {MAX_DEPTH}")
        self.marked.append(self.stack)
        self.stack = []

    def pop(self) -> None:
        """Drops what was put on the stack last, or a mark."""
        if self.stack:
            self.stack.pop()
        else:
            self.to_mark()

    def pop_mark(self) -> None:
        """Drops all since the last mark."""
        self.to_mark()

    def protocol(self) -> None:
        """Raises FormatError for a protocol that does not exist yet."""
        protocol = self.number(1)
        if protocol > MAX_PROTOCOL:
            raise FormatError(f"a pickle of a protocol that is not known: {protocol}")

    def frame(self) -> None:
        """The size of what follows, for readers of a stream; here all data is in memory."""
        self.number(8)

    def text(self, size: int) -> None:
        """Text of `size` bytes."""
        self.stack.append(self.take(size).decode("utf-8", "surrogatepass"))

    def other(self, size: int = 0) -> None:
        """A value of `size` bytes that the reader skips."""
        self.at += size
        if self.at > len(self.data):
            raise FormatError(f"cut off: {len(self.data)} bytes")
        self.stack.append(OTHER)

    def integer(self, size: int) -> None:
        """A signed number of `size` bytes."""
        if size > _LONGEST_NUMBER:
            self.other(size)
        else:
            self.stack.append(int.from_bytes(self.take(size), "little", signed=True))

    def put(self, index: int) -> None:
        """Remembers what is on top of the stack."""
        # Picklers count the objects that they put there, of which none is shorter than a byte.
        if index > len(self.data):
            raise FormatError(f"a memo index that no pickle of this size has: {index}")
        missing = index + 1 - len(self.memo)
        if missing > 0:
            self.memo += [OTHER] * missing
        self.memo[index] = self.stack[-1]

    def tuple(self, items: list[object]) -> None:
        """Keeps a tuple only if it may be the state of an object that has slots."""
        match items:
            case [_, list()]:
                self.stack.append(tuple(items))
            case _:
                self.stack.append(OTHER)

    def short_tuple(self, size: int) -> None:
        """A tuple of the values on top of the stack."""
        items = self.stack[-size:]
        if len(items) < size:
            raise self.malformed()
        del self.stack[-size:]
        self.tuple(items)

    def drop(self) -> None:
        """Adds to a collection that the reader skips."""
        self.to_mark()
        self.top()

    def append(self) -> None:
        """Adds one value to a collection that the reader skips."""
        self.stack.pop()
        self.top()

    def collection(self) -> None:
        """A collection of all since the last mark, which the reader skips."""
        self.to_mark()
        self.stack.append(OTHER)

    def empty_dictionary(self) -> None:
        """A dictionary to which items are added later."""
        self._keep([])

    def dictionary(self) -> None:
        """A dictionary of all since the last mark."""
        self._keep(self._items(self.to_mark()))

    def set_items(self) -> None:
        """Adds all since the last mark to a dictionary."""
        self._add(self._items(self.to_mark()))

    def set_item(self) -> None:
        """Adds a key and a value to a dictionary."""
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
        """A class whose module and name follow as two lines."""
        module = self.line()
        self.stack.append(kind_of(module, self.line()))

    def class_on_stack(self) -> None:
        """A class whose module and name are on the stack."""
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise FormatError(f"not a pickle: a class without a name at byte {self.at - 1}")
        self.stack.append(kind_of(module, name))

    def make(self, arguments: int) -> None:
        """An object of a class. Its arguments, which are on the stack, are not needed."""
        if len(self.stack) <= arguments:
            raise self.malformed()
        del self.stack[-arguments:]
        match self.stack.pop():
            case Kind.MAPPING:
                self._keep([])
            case Kind.PLAIN:
                self.stack.append(OTHER)
            case _:
                self._keep(Record())

    def _keep(self, made: object) -> None:
        self._objects_left -= 1
        if self._objects_left < 0:
            raise FormatError(f"more objects than a pickle of this size has: {len(self.data)} bytes")
        self.stack.append(made)

    def build(self) -> None:
        """Gives an object its state."""
        state = self.stack.pop()
        made = self.stack[-1]
        if isinstance(made, Record):
            made.state = state
