"""Parses the XML of listings and batch deletions.

In linear time, and in memory that is bounded by what is kept: botocore builds a tree of the whole document, which
takes hundreds of megabytes for a few megabytes of nested or empty elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple
from xml.parsers import expat

# S3's documents have four levels, at most 1,000 keys and 1,000 prefixes of about ten elements, and no attributes but
# those of namespaces.
_MAX_DEPTH = 16
_MAX_ELEMENTS_AND_ATTRIBUTES = 100_000
# Bytes of one tag, and characters of one text. A key has at most 1,024 bytes, six times as much if each is escaped.
_MAX_TAG = 64 * 1024
_MAX_TEXT = 64 * 1024

_CUT_OFF = frozenset(
    {
        expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS],
        expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN],
        expat.errors.codes[expat.errors.XML_ERROR_PARTIAL_CHAR],
        expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION],
    }
)


class TruncatedDocument(Exception):
    """The document ends before its root element does."""


class InvalidDocument(Exception):
    """Not XML, or not of a form that S3 sends."""


class Document(NamedTuple):
    """`texts` are elements directly in the root, `items` the fields of repeated elements in it."""

    root: str
    texts: Mapping[str, str]
    items: Mapping[str, list[dict[str, str]]]


class Kind(NamedTuple):
    """A kind of document: its root elements, and of it and its repeated elements what is kept."""

    roots: Collection[str]
    texts: Collection[str]
    items: Mapping[str, Collection[str]]


def parse_document(body: bytes, kind: Kind) -> Document:
    """Parses `body` and keeps what `kind` names.

    Raises TruncatedDocument or InvalidDocument.
    """
    builder = _Builder(kind)
    # intern=None, or pyexpat keeps every name that occurs.
    parser = expat.ParserCreate("utf-8", intern=None)
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        for start in range(0, len(body), _MAX_TAG):
            # Before 2.6.0 expat scans an unfinished tag from its start with every part (CVE-2023-52425).
            if start - parser.CurrentByteIndex > _MAX_TAG:
                raise InvalidDocument(f"XML tag longer than {_MAX_TAG} bytes")
            parser.Parse(body[start : start + _MAX_TAG], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        if error.code in _CUT_OFF:
            raise TruncatedDocument(f"XML is cut off after {len(body)} bytes") from None
        raise InvalidDocument(f"not XML: {expat.ErrorString(error.code)}") from None
    return Document(builder.root, builder.texts, builder.items)


def _refuse_doctype(*_: object) -> None:
    raise InvalidDocument("XML with a document type, which S3 does not send")


class _Builder:
    def __init__(self, kind: Kind) -> None:
        self.root = ""
        self.texts: dict[str, str] = {}
        self.items: dict[str, list[dict[str, str]]] = {name: [] for name in kind.items}
        self._kind = kind
        self._path: list[str] = []
        self._count = 0
        # Where the text of the current element goes, under its name; None: it is not wanted.
        self._target: dict[str, str] | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._count += 1 + len(attributes)
        if self._count > _MAX_ELEMENTS_AND_ATTRIBUTES:
            raise InvalidDocument(f"XML with more than {_MAX_ELEMENTS_AND_ATTRIBUTES} elements and attributes")
        if len(self._path) == _MAX_DEPTH:
            raise InvalidDocument(f"XML elements nested deeper than {_MAX_DEPTH}")
        self._path.append(name.rpartition(":")[2])
        self._target = self._find_target(self._path)

    def _find_target(self, path: list[str]) -> dict[str, str] | None:
        match path:
            case [root]:
                if root not in self._kind.roots:
                    raise InvalidDocument(f"unexpected XML element {root[:64]}")
                self.root = root
            case [_, name] if name in self._kind.texts:
                self.texts[name] = ""
                return self.texts
            case [_, name] if name in self.items:
                self.items[name].append({})
            case [_, item, name] if name in self._kind.items.get(item, ()):
                self.items[item][-1][name] = ""
                return self.items[item][-1]
        return None

    def text(self, text: str) -> None:
        if self._target is None:
            return
        self._target[self._path[-1]] += text
        if len(self._target[self._path[-1]]) > _MAX_TEXT:
            raise InvalidDocument(f"XML text longer than {_MAX_TEXT} characters")

    def end(self, _name: str) -> None:
        self._path.pop()
        self._target = None
