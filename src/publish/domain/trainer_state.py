"""Reads `trainer_state.json` as it arrives, in bounded memory, and tells cut off from broken.

Every strict prefix of a document is "still being written"; what no document begins with is a
fault. A document is what Python's json module writes: RFC 8259 and the bare `NaN`, `Infinity`
and `-Infinity`, in UTF-8.
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable

from publish.domain.errors import FormatError

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 1000
# Python reads no longer integer (sys.int_info.default_max_str_digits).
MAX_NUMBER = 4300

# A state is the set of tokens that may come next, each by its first character; `w` is a word:
# a number or one of the literals.
_VALUE = '{["w'
_FIRST_ITEM = '{["w]'
_KEY = '"'
_FIRST_KEY = '"}'
_COLON = ":"
_NEXT_MEMBER = ",}"
_NEXT_ITEM = ",]"
_END = ""

_SPACE = re.compile(r"[ \t\n\r]*")
_TEXT = r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_STRING_BODY = re.compile(_TEXT)
_PART_OF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_WORD = re.compile(r"[-+.0-9A-Za-z]*")
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_PART_OF_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][-+]?[0-9]*)?)?|[eE][-+]?[0-9]*)?)?\Z")
_STEP = re.compile(r"-?[0-9]{1,20}\Z")
_SMALL_SCALAR = (
    rf'(?:"{_TEXT}"|-?(?:0|[1-9][0-9]{{0,99}})(?:\.[0-9]{{1,99}})?(?:[eE][-+]?[0-9]{{1,9}})?'
    r"|true|false|null|NaN|-?Infinity)"
)


def _or_in_a_container(value: str) -> str:
    """The pattern of `value`, of an array of such and of an object of such; `_` is white space."""
    member = rf'"{_TEXT}"_:_{value}_'
    return rf"(?:{value}|\[_(?:{value}_(?:,_{value}_)*+)?\]|\{{_(?:{member}(?:,_{member})*+)?\}})"


# A run of small items with their commas, which is what log_history is: understood in one step, it
# makes the whole many times faster.
_SMALL_ITEMS = re.compile(
    f"(?:{_or_in_a_container(_or_in_a_container(_SMALL_SCALAR))}_,_)++".replace("_", r"[ \t\n\r]*+")
)
_SMALL_DEPTH = 2

_STEP_KEY = "global_step"
# Written with every letter as \uXXXX; a longer string is another key.
_LONGEST_STEP_KEY = 6 * len(_STEP_KEY)


def global_step(parts: Iterable[bytes]) -> int | None:
    """The `global_step` of the document that `parts` make up; None: it is cut off before its end.

    Raises FormatError, whose text is the fault alone, for what is neither.
    """
    reader = _Reader()
    decoder = getincrementaldecoder("utf-8")()
    size = 0
    for part in parts:
        size += len(part)
        if size > MAX_BYTES:
            raise FormatError(f"larger than {MAX_BYTES} bytes")
        try:
            reader.feed(decoder.decode(part))
        except UnicodeDecodeError as error:
            raise FormatError("not UTF-8") from error
    unfinished_character, _ = decoder.getstate()
    return reader.close(b"" if reader.in_string else unfinished_character)


class _Reader:
    """A pushdown automaton over the tokens that keeps one value: the outermost `global_step`."""

    def __init__(self) -> None:
        self.in_string = False
        self._text = ""  # read but not yet understood: a token that may go on
        self._passed = 0  # characters understood before _text
        self._next = _VALUE
        self._open = ""  # the brackets that are open
        self._key = ""  # the string under way, as written, as far as it may be _STEP_KEY
        self._value_is_step = False
        self._step: int | None = None
        self._is_object = False

    def feed(self, text: str) -> None:
        """Takes in the next characters. Raises FormatError where no document goes on like this."""
        self._text += text
        at = 0
        while at < len(self._text):
            end = self._string(at) if self.in_string else self._token(at)
            if end is None:
                break
            at = end
        self._text = self._text[at:]
        self._passed += at

    def close(self, unfinished: bytes) -> int | None:
        """The step, or None for a document that is cut off. `unfinished`: part of a character."""
        if self.in_string:
            return None
        if self._text:  # a word, which ends here
            if not self._open and _is_scalar(self._text):
                self._next = _END
            elif not _may_become_scalar(self._text):
                raise self._broken(0)
        if unfinished:
            raise self._broken(len(self._text))
        if self._next != _END:
            return None
        if not self._is_object:
            raise FormatError("not an object")
        if self._step is None:
            raise FormatError("no 64-bit integer global_step in it")
        return self._step

    def _token(self, at: int) -> int | None:
        """Understands what stands at `at`; returns where it ends, None if it may go on."""
        if (
            self._next in (_VALUE, _FIRST_ITEM)
            and self._open[-1:] == "["
            and len(self._open) <= MAX_DEPTH - _SMALL_DEPTH
        ):
            run = _SMALL_ITEMS.match(self._text, at)
            if run:
                self._next = _VALUE
                return run.end()
        space = _SPACE.match(self._text, at)
        if space and space.end() > at:
            return space.end()
        char = self._text[at]
        if (char if char in '{}[]:,"' else "w") not in self._next:
            raise self._broken(at)
        if char == '"':
            self.in_string = True
            self._key = ""
        elif char in "{[":
            self._open_bracket(char)
        elif char in "}]":
            self._open = self._open[:-1]
            self._value_ends(None)
        elif char == ":":
            self._next = _VALUE
        elif char == ",":
            self._next = _KEY if self._open[-1] == "{" else _VALUE
        else:
            return self._word(at)
        return at + 1

    def _open_bracket(self, char: str) -> None:
        if len(self._open) == MAX_DEPTH:
            raise FormatError(f"nested deeper than {MAX_DEPTH}")
        self._is_object = self._is_object or (not self._open and char == "{")
        self._set_step(None)
        self._open += char
        self._next = _FIRST_KEY if char == "{" else _FIRST_ITEM

    def _word(self, at: int) -> int | None:
        match = _WORD.match(self._text, at)
        word = match[0] if match else ""
        if len(word) > MAX_NUMBER:
            raise FormatError(f"a number of more than {MAX_NUMBER} characters, at character {self._passed + at}")
        end = at + len(word)
        if word and end == len(self._text):
            return None
        if not _is_scalar(word):
            raise self._broken(at)
        self._value_ends(int(word) if _STEP.match(word) else None)
        return end

    def _string(self, at: int) -> int | None:
        body = _STRING_BODY.match(self._text, at)
        end = body.end() if body else at
        if len(self._key) <= _LONGEST_STEP_KEY:
            self._key += self._text[at : min(end, at + _LONGEST_STEP_KEY + 1)]
        if end == len(self._text):
            return end
        if self._text[end] != '"':
            if not _PART_OF_ESCAPE.match(self._text, end):
                raise self._broken(end)
            # The escape is read again when the rest of it is there.
            return None if end == at else end
        self.in_string = False
        if self._next in (_KEY, _FIRST_KEY):
            self._value_is_step = len(self._open) == 1 and self._key_is_step()
            self._next = _COLON
        else:
            self._value_ends(None)
        return end + 1

    def _key_is_step(self) -> bool:
        return len(self._key) <= _LONGEST_STEP_KEY and json.loads(f'"{self._key}"') == _STEP_KEY

    def _value_ends(self, integer: int | None) -> None:
        self._set_step(integer)
        self._next = _END if not self._open else _NEXT_MEMBER if self._open[-1] == "{" else _NEXT_ITEM

    def _set_step(self, integer: int | None) -> None:
        if self._value_is_step:
            self._step = integer
            self._value_is_step = False

    def _broken(self, at: int) -> FormatError:
        where = f"at character {self._passed + at}"
        if self._passed + at == 0 and self._text.startswith("\ufeff"):
            return FormatError("begins with a byte order mark")
        if self._next == _END:
            return FormatError(f"something follows the document {where}")
        return FormatError(f"not JSON {where}")


def _is_scalar(word: str) -> bool:
    return word in _LITERALS or bool(_NUMBER.match(word))


def _may_become_scalar(word: str) -> bool:
    return any(literal.startswith(word) for literal in _LITERALS) or bool(_PART_OF_NUMBER.match(word))
