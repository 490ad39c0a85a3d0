"""Whether one file of a save is as complete as its row in `frameworks` asks.

Each check returns what the file lacks, for people, or None. A file that may still grow into a right
one lacks something; one that cannot raises FormatError.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from publish.domain import dcp_metadata, safetensors, torch_zip, weight_index
from publish.domain.entry import beside, to_text
from publish.domain.errors import FormatError
from publish.domain.json_document import MAX_BYTES, integer_at, parse_object
from publish.domain.layout import Check, Need
from publish.domain.ports import Store

ABSENT = "is not there"

Sizes = Callable[[bytes], int | None]
"""Gives the size of a file of the save by its path; None: it is not there."""


def why_incomplete(store: Store, need: Need, path: bytes, step: int, sizes: Sizes) -> str | None:
    """What the file at `path` lacks. Raises FormatError, with the fault alone."""
    if need.check is Check.JSON:
        return _json(store, need, path, step)
    size = store.size(path)
    if size is None:
        return ABSENT
    if size == 0 and need.check is not Check.ANY:
        return "is empty"
    try:
        return _content(store, need.check, path, size, sizes)
    except FormatError as fault:
        return f"is not readable: {fault}"


def _content(store: Store, check: Check, path: bytes, size: int, sizes: Sizes) -> str | None:
    match check:
        case Check.ZIP:
            return _zip(store, path, size)
        case Check.DCP:
            return _dcp(store, path, sizes)
        case Check.INDEX:
            return _index(store, path, sizes)
        case _:
            return None


def _json(store: Store, need: Need, path: bytes, step: int) -> str | None:
    content = store.read(path, MAX_BYTES + 1)
    if content is None:
        return ABSENT
    document = parse_object(content)
    if document is None:
        return "is cut off"
    if need.unset_key and document.get(need.unset_key) is True:
        return f"says that the save is going to be removed ({need.unset_key})"
    if need.step_key and (found := integer_at(document, need.step_key)) != step:
        raise FormatError(f"{need.step_key} differs from the step in the name of the folder: {found}")
    if need.set_key and document.get(need.set_key) is None:
        return f"has no {need.set_key}"
    return None


def _zip(store: Store, path: bytes, size: int) -> str | None:
    start = store.read_range(path, 0, len(torch_zip.MAGIC))
    if start != torch_zip.MAGIC:
        return "does not begin as a file of torch.save"
    return torch_zip.fault(store.read_range(path, -torch_zip.TAIL_SIZE, torch_zip.TAIL_SIZE), size)


def _index(store: Store, path: bytes, sizes: Sizes) -> str | None:
    named = weight_index.shards(store.read(path, MAX_BYTES + 1) or b"")
    if not isinstance(named, frozenset):
        return f"is {named}" if named else "has no weight_map"
    for name in sorted(named):
        if fault := _safetensors(store, beside(path, name), sizes):
            return f"names {to_text(name)}, which {fault}"
    return None


def _safetensors(store: Store, path: bytes, sizes: Sizes) -> str | None:
    size = sizes(path)
    if size is None:
        return ABSENT
    fault = safetensors.file_fault(partial(store.read_range, path), size)
    return f"is broken: {fault}" if fault else None


def _dcp(store: Store, path: bytes, sizes: Sizes) -> str | None:
    content = store.read(path, dcp_metadata.MAX_BYTES + 1) or b""
    # A longer one is not read: that it is not empty has to do.
    if len(content) > dcp_metadata.MAX_BYTES:
        return None
    ends = dcp_metadata.file_ends(content)
    part = next(dcp_metadata.missing_parts(ends, lambda name: sizes(beside(path, name))), None)
    if part is None:
        return None
    if part.is_outside:
        return f"names a file outside its folder: {part.name}"
    return f"names {part.name}, which " + (ABSENT if part.size is None else f"has {part.size} of {part.end} bytes")
