"""The index of a model whose weights are in several files (`model.safetensors.index.json`)."""

from __future__ import annotations

import json


def shards(content: bytes) -> frozenset[bytes] | str | None:
    """The names of the files that an index names, or what is wrong with it; None: it is not such an index."""
    try:
        index = json.loads(content)
    except (ValueError, RecursionError):
        return "not JSON" if b'"weight_map"' in content else None
    if not isinstance(index, dict) or "weight_map" not in index:
        return None
    weights = index["weight_map"]
    if not isinstance(weights, dict):
        return "weight_map is not an object"
    names = {_file_name(value) for value in weights.values()}
    if None in names:
        return "weight_map names something that is not a file beside it"
    return frozenset(name for name in names if name is not None)


def _file_name(value: object) -> bytes | None:
    if not isinstance(value, str) or "/" in value or "\0" in value or value in ("", ".", ".."):
        return None
    try:
        return value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
