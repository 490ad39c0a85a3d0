"""What the `.metadata` of a PyTorch distributed checkpoint says about the files beside it.

A pickled `torch.distributed.checkpoint.metadata.Metadata`, whose `storage_data` maps each piece of the state
to where it lies: an object with the attributes `relative_path`, `offset` and `length`. A writer may bring
its own classes, so objects are recognised by their attributes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from publish.domain.errors import FormatError
from publish.domain.pickle_machine import Record
from publish.domain.pickle_reader import load

MAX_BYTES = 64 * 1024 * 1024
"""A longer one is not read."""

# Characters of a name that a message quotes.
_MAX_NAME = 200

_Attributes = dict[object, object]


def is_json(content: bytes) -> bool:
    """Whether another program's `.metadata` it is."""
    return content.lstrip()[:1] in (b"{", b"[")


def file_ends(content: bytes) -> dict[str, int]:
    """The files of the checkpoint, each with the byte at which its last piece ends.

    Raises FormatError, with the fault alone, for what is not such a file.
    """
    metadata = load(content)
    attributes = _AttributeReader(frozenset({"storage_data"})).attributes(metadata)
    if "storage_data" not in attributes:
        raise FormatError("not the metadata of a distributed checkpoint: it has no storage_data")
    pieces = attributes["storage_data"]
    ends: dict[str, int] = {}
    if isinstance(pieces, list):
        reader = _AttributeReader(frozenset({"relative_path", "offset", "length"}))
        for piece in {id(piece): piece for piece in pieces[1::2]}.values():
            path, end = _piece(reader.attributes(piece))
            if path is not None:
                ends[path] = max(end, ends.get(path, 0))
    return ends


class MissingPart(NamedTuple):
    """A file that the metadata names and that the checkpoint does not have, or not as far as it must."""

    name: str
    """As the metadata has it; of a long one the beginning."""
    end: int
    size: int | None
    """In bytes; None: the file is not there."""
    is_outside: bool
    """The name leads out of the folder of the metadata."""


def missing_parts(ends: Mapping[str, int], size_of: Callable[[bytes], int | None]) -> Iterator[MissingPart]:
    """Of the files that `file_ends` gave, those that are missing or too short.

    `size_of` gives the size of a file in bytes, by its path relative to the folder of the metadata; None: not there.
    """
    for name, end in sorted(ends.items()):
        path = path_below(name)
        size = None if path is None else size_of(path)
        if size is None or size < end:
            yield MissingPart(name[:_MAX_NAME], end, size, path is None)


def path_below(name: str) -> bytes | None:
    """A path of the metadata as a listing of its folder has it; None: it leads out of the folder."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        return None
    return "/".join(parts).encode("utf-8", "surrogatepass")


def _piece(attributes: _Attributes) -> tuple[str | None, int]:
    match attributes:
        case {"relative_path": str(path), "offset": int(offset), "length": int(length)}:
            if offset < 0 or length < 0:
                raise FormatError(f"a piece that has no place in its file: {path[:_MAX_NAME]}")
            return path, offset + length
        case {"relative_path": str(path)}:
            return path, 0
    return None, 0


class _AttributeReader:
    """Finds attributes; looks at each dictionary once, however many records share it."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._seen: dict[int, _Attributes] = {}

    def attributes(self, value: object) -> _Attributes:
        """Those of a record's attributes that are wanted."""
        state = value.state if isinstance(value, Record) else None
        parts = state if isinstance(state, tuple) else (state,)
        found: _Attributes = {}
        for part in parts:
            if isinstance(part, list):
                found |= self._of(part)
        return found

    def _of(self, items: list[object]) -> _Attributes:
        known = self._seen.get(id(items))
        if known is None:
            pairs = zip(items[::2], items[1::2], strict=True)
            known = {key: value for key, value in pairs if isinstance(key, str) and key in self._wanted}
            self._seen[id(items)] = known
        return known
