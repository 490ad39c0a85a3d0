"""Which files of a save are judged, by their names, and what each must hold to be whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from publish.domain import dcp_metadata, ocdbt, safetensors, torch_zip, weight_index
from publish.domain.entry import beside, to_text
from publish.domain.errors import FormatError
from publish.domain.json_document import MAX_BYTES as MAX_JSON
from publish.domain.json_document import parse_object
from publish.domain.save_files import SaveFiles
from publish.domain.trainer_state import global_step

Rule = Callable[[SaveFiles, bytes], Iterator[str]]
"""Yields what is wrong with a file of a save."""

# With the first request for a file comes as much as most files need.
_FIRST_READ = 64 * 1024
_MAGIC_SIZE = 4

_CHECKPOINT = re.compile(rb"checkpoint-([0-9]+)")
_METADATA = re.compile(rb"(?:__[0-9]+)?\.metadata")
_PIECES = re.compile(rb"(__[0-9]+)_[0-9]+\.distcp")
# The names under which PyTorch's frameworks call torch.save; all else that ends so may be anything.
_BY_TORCH = re.compile(
    rb"(?:.*/)?(?:pytorch_model[^/]*\.bin|adapter_model\.bin|(?:optimizer|scheduler)\.(?:pt|bin)|training_args\.bin"
    rb"|rng_state[^/]*\.pth|mp_rank_[^/]*/[^/]*\.pt|[^/]*_states\.pt|trainer_state\.pt)",
    re.DOTALL,
)


def rule_for(file: bytes) -> Rule | None:
    """The rule for a file by its path below the save; None: it is not judged."""
    folder, _, name = file.rpartition(b"/")
    for suffix, rule in _BY_SUFFIX.items():
        if name.endswith(suffix):
            return rule
    if is_metadata(file):
        return _metadata
    if name == b"manifest.ocdbt":
        return _manifest
    if not folder and name.endswith(b".json"):
        return _trainer_state if name == b"trainer_state.json" else _json
    return None


def is_metadata(file: bytes) -> bool:
    """Whether a file has the name of a distributed checkpoint's metadata, the whole one or a rank's own."""
    return bool(_METADATA.fullmatch(file.rpartition(b"/")[2]))


def _safetensors(save: SaveFiles, file: bytes) -> Iterator[str]:
    if fault := safetensors.file_fault(partial(save.read, file), save.size(file)):
        yield fault


def _index(save: SaveFiles, file: bytes) -> Iterator[str]:
    if save.size(file) > MAX_JSON:
        return
    content = save.read(file, 0, MAX_JSON)
    if _is_cut_off(content):
        yield _cut_off(save, file)
        return
    named = weight_index.shards(content)
    if isinstance(named, str):
        yield named
        return
    for shard in sorted(named or ()):
        path = beside(file, shard)
        if path not in save.files:
            yield f"it names a file that is not there: {to_text(shard)}"
        elif save.size(path) == 0:
            yield f"it names a file that is empty: {to_text(shard)}"


def _torch(save: SaveFiles, file: bytes) -> Iterator[str]:
    size = save.size(file)
    start = save.read(file, 0, _MAGIC_SIZE if size > _FIRST_READ else _FIRST_READ)
    if start.startswith(torch_zip.MAGIC):
        tail = start if len(start) == size else save.read(file, -torch_zip.TAIL_SIZE, torch_zip.TAIL_SIZE)
        if fault := torch_zip.fault(tail[-torch_zip.TAIL_SIZE :], size):
            yield fault
    elif not start:
        yield "empty"
    elif start.startswith(torch_zip.OLD_MAGIC):
        return
    elif _BY_TORCH.fullmatch(file):
        yield "not a file that torch.save wrote"
    elif torch_zip.MAGIC.startswith(start) or (size < _MAGIC_SIZE and not file.endswith(b".bin")):
        yield f"cut off: {size} bytes"
    elif start.startswith(bytes(_MAGIC_SIZE)) and not file.endswith(b".bin"):
        yield "it begins with zeros"


def _metadata(save: SaveFiles, file: bytes) -> Iterator[str]:
    if save.size(file) > dcp_metadata.MAX_BYTES:
        return
    content = save.read(file, 0, dcp_metadata.MAX_BYTES)
    if dcp_metadata.is_json(content):
        return
    try:
        ends = dcp_metadata.file_ends(content)
    except FormatError as fault:
        yield str(fault)
        return
    for part in dcp_metadata.missing_parts(ends, partial(_size_beside, save, file)):
        if part.is_outside:
            yield f"it names a file outside its folder: {part.name}"
        elif part.size is None:
            yield f"it names a file that is not there: {part.name}"
        else:
            yield f"it needs {part.end} bytes of a file that has {part.size}: {part.name}"


def _size_beside(save: SaveFiles, file: bytes, name: bytes) -> int | None:
    path = beside(file, name)
    return save.size(path) if path in save.files else None


def _pieces(save: SaveFiles, file: bytes) -> Iterator[str]:
    rank = _PIECES.fullmatch(file.rpartition(b"/")[2])
    folder = file
    while folder:
        folder, slash, _ = folder.rpartition(b"/")
        if folder + slash + b".metadata" in save.files:
            return
        if rank and folder + slash + rank[1] + b".metadata" in save.files:
            return
    yield "no .metadata in its folder or above it"


def _manifest(save: SaveFiles, file: bytes) -> Iterator[str]:
    if save.size(file) <= ocdbt.MAX_BYTES and (fault := ocdbt.fault(save.read(file, 0, ocdbt.MAX_BYTES))):
        yield fault


def _json(save: SaveFiles, file: bytes) -> Iterator[str]:
    if save.size(file) <= MAX_JSON and _is_cut_off(save.read(file, 0, MAX_JSON)):
        yield _cut_off(save, file)


def _trainer_state(save: SaveFiles, file: bytes) -> Iterator[str]:
    try:
        step = global_step(save.read(file, 0, MAX_JSON + 1))
    except FormatError as fault:
        yield str(fault)
        return
    folder = _CHECKPOINT.fullmatch(save.name)
    if step is None:
        yield _cut_off(save, file)
    elif folder and int(folder[1]) != step:
        yield f"global_step differs from the step in the name of the folder: {step}"


def _is_cut_off(content: bytes) -> bool:
    try:
        return parse_object(content) is None
    except FormatError:
        return False


def _cut_off(save: SaveFiles, file: bytes) -> str:
    size = save.size(file)
    return f"cut off: {size} bytes" if size else "empty"


_BY_SUFFIX = {
    b".safetensors": _safetensors,
    b".index.json": _index,
    b".distcp": _pieces,
    b".pt": _torch,
    b".pth": _torch,
    b".ckpt": _torch,
    b".bin": _torch,
}
