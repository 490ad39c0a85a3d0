"""Files that the ranks of a job write, one each, and whose names say how many there must be.

Only names are looked at. Where the number of ranks is not in the names (rng states, DeepSpeed), a rank
that is missing at the end does not show.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from math import prod

from publish.domain.light_typing import NamedTuple

Position = tuple[int, ...]


class Missing(NamedTuple):
    """A file whose name or whose set shows that another one is missing."""

    file: bytes
    why: str


class _Member(NamedTuple):
    """One file of a set. `shape`: the number of files in each direction, where the name says it."""

    file: bytes
    position: Position
    shape: Position | None


_Set = tuple[bytes, ...]
_Rule = Callable[[bytes], tuple[_Set, Position, Position | None] | None]

# veRL, SkyRL: model_world_size_8_rank_0.pt
_WORLD = re.compile(rb"(.+)_world_size_([0-9]+)_rank_([0-9]+)\.pt")
# nanotron: tp-0-of-2_dp-0-of-4_pp-0-of-1.pt
_GRID = re.compile(rb"tp-([0-9]+)-of-([0-9]+)_dp-([0-9]+)-of-([0-9]+)_pp-([0-9]+)-of-([0-9]+)\.pt")
# rng_state_0.pth of transformers, random_states_0.pkl of accelerate
_RANDOM = re.compile(rb"(rng_state|random_states)_([0-9]+)\.(?:pth|pkl)")
# DeepSpeed: bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt, mp_rank_00_model_states.pt
_DEEPSPEED = re.compile(
    rb"((?:bf16_|fp16_)?(?:zero_pp|expp)_rank_)?(?(1)([0-9]+)_)mp_rank_([0-9]+)(_[a-z]+_states\.pt)"
)


def _world(name: bytes) -> tuple[_Set, Position, Position | None] | None:
    match = _WORLD.fullmatch(name)
    return match and ((b"world", match[1]), (int(match[3]),), (int(match[2]),))


def _grid(name: bytes) -> tuple[_Set, Position, Position | None] | None:
    match = _GRID.fullmatch(name)
    numbers = [int(number) for number in match.groups()] if match else []
    return ((b"grid",), tuple(numbers[::2]), tuple(numbers[1::2])) if numbers else None


def _random(name: bytes) -> tuple[_Set, Position, Position | None] | None:
    match = _RANDOM.fullmatch(name)
    return match and ((b"random", match[1]), (int(match[2]),), None)


def _deepspeed(name: bytes) -> tuple[_Set, Position, Position | None] | None:
    match = _DEEPSPEED.fullmatch(name)
    return match and ((b"deepspeed", match[1] or b"", match[4]), (int(match[2] or 0), int(match[3])), None)


_RULES: tuple[_Rule, ...] = (_world, _grid, _random, _deepspeed)


def missing(files: Iterable[bytes]) -> Iterator[Missing]:
    """The sets that are not complete, of the files of a save (their paths below it)."""
    sets: defaultdict[tuple[bytes, _Set], list[_Member]] = defaultdict(list)
    for file in files:
        folder, slash, name = file.rpartition(b"/")
        for rule in _RULES:
            if found := rule(name):
                kind, position, shape = found
                sets[folder + slash, kind].append(_Member(file, position, shape))
    for members in sets.values():
        if fault := _fault(members):
            yield fault
    yield from _unequal_optimizers(sets)


def _fault(members: list[_Member]) -> Missing | None:
    shapes = {member.shape for member in members}
    first = min(members)
    if len(shapes) > 1:
        other = next(member for member in members if member.shape != first.shape)
        return Missing(other.file, "of another number of ranks than the files beside it")
    positions = {member.position for member in members}
    shape = first.shape or tuple(max(along) + 1 for along in zip(*positions, strict=True))
    outside = [member for member in members if any(at >= size for at, size in zip(member.position, shape, strict=True))]
    if outside:
        return Missing(min(outside).file, "a rank above the number of ranks in its name")
    if len(positions) < prod(shape):
        absent = next(at for at in (_nth_position(index, shape) for index in count()) if at not in positions)
        rank = absent[0] if len(absent) == 1 else absent
        return Missing(first.file, f"{len(positions)} of {prod(shape)} ranks are there; rank {rank} is not")
    return None


def _nth_position(index: int, shape: Position) -> Position:
    position = []
    for size in reversed(shape):
        index, at = divmod(index, size)
        position.append(at)
    return tuple(reversed(position))


def _unequal_optimizers(sets: Mapping[tuple[bytes, _Set], list[_Member]]) -> Iterator[Missing]:
    """DeepSpeed with ZeRO-3: as many ranks wrote their part of the model as of the optimizer."""
    for (folder, kind), members in sets.items():
        if kind[0] != b"deepspeed" or not kind[1] or kind[2] != b"_model_states.pt":
            continue
        for precision in (b"", b"bf16_", b"fp16_"):
            optimizer = sets.get((folder, (b"deepspeed", precision + kind[1], b"_optim_states.pt")), members)
            if len(members) != len(optimizer):
                yield Missing(min(optimizer).file, f"{len(optimizer)} ranks, and {len(members)} model states beside it")
