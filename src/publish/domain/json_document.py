"""Reads a JSON file of a framework and tells one that is still being written from a broken one.

A proper prefix of a valid document counts as still being written; anything else that is not a
document is an error. A document is what Python's json module writes: RFC 8259 and the bare
`NaN`, `Infinity` and `-Infinity`, in UTF-8.
"""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Mapping

from publish.domain.entry import MAX_UINT64
from publish.domain.errors import FormatError

MAX_BYTES = 64 * 1024 * 1024

_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
# json stops in the middle of such a number: it reads the part that is a number already.
_UNFINISHED_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.|(?:\.[0-9]+)?[eE][-+]?)"
_NUMBER_CHARS = "+-.0123456789eE"
_UNFINISHED_ESCAPE = r"u?[0-9a-fA-F]{0,4}"


def parse_object(content: bytes) -> dict[str, object] | None:
    """The members of a whole document; None: the document is cut off before its end.

    Raises FormatError, whose text is the fault alone, for anything else.
    """
    if len(content) > MAX_BYTES:
        raise FormatError(f"larger than {MAX_BYTES} bytes")
    text = _decode(content)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        if _is_cut_off(error):
            return None
        raise _fault(error) from error
    except RecursionError as error:
        raise FormatError("nested too deeply to be read") from error
    except ValueError as error:
        raise FormatError("an integer has too many digits to be read") from error
    if not isinstance(document, dict):
        raise FormatError("not an object")
    return document


def integer_at(document: Mapping[str, object], key: str) -> int:
    """The 64-bit integer that a document gives for a key. Raises FormatError if it gives none."""
    value = document.get(key)
    if type(value) is not int or abs(value) > MAX_UINT64:
        raise FormatError(f"no 64-bit integer {key}")
    return value


def _decode(content: bytes) -> str:
    """The text; a character that is cut off at the end becomes U+FFFD, which JSON allows only in a string."""
    decoder = getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(content)
    except UnicodeDecodeError as error:
        raise FormatError("not UTF-8") from error
    unfinished, _ = decoder.getstate()
    return text + "\ufffd" * bool(unfinished)


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    """Whether more text could make a document of this one: all of it from the error on is an unfinished token."""
    import re  # noqa: PLC0415  (start-up: commands that read no state)

    rest = error.doc[error.pos :]
    if not rest or error.msg.startswith("Unterminated string"):
        return True
    if error.msg.startswith("Expecting value"):
        return rest == "-" or any(literal.startswith(rest) for literal in _LITERALS)
    if error.msg.startswith("Invalid \\uXXXX"):
        return re.fullmatch(_UNFINISHED_ESCAPE, rest) is not None
    before = error.doc[: error.pos]
    number = before[len(before.rstrip(_NUMBER_CHARS)) :]
    return number != "" and re.fullmatch(_UNFINISHED_NUMBER, number + rest) is not None


def _fault(error: json.JSONDecodeError) -> FormatError:
    if error.doc.startswith("\ufeff"):
        return FormatError("starts with a byte order mark")
    if error.msg.startswith("Extra data"):
        return FormatError(f"unexpected data after the document at character {error.pos}")
    return FormatError(f"not JSON at character {error.pos}")
