"""Power cuts of the strict model: the mixtures that are always tried, and some that are drawn."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.support.strict_model import Choice, Content, Model, Point, Tree


def present(_: Point) -> int:
    """Everything that was done."""
    return -1


def durable(_: Point) -> int:
    """Nothing but what was synced."""
    return 0


def names_alone(point: Point) -> int:
    """Names without contents: files of size zero."""
    return 0 if point.name is None else -1


def contents_alone(point: Point) -> int:
    """Contents without names."""
    return -1 if point.name is None else 0


def cuts(model: Model, top: int, random_cuts: random.Random, draws: int) -> Iterator[tuple[str, Tree]]:
    """What a power cut at this moment may leave below `top`, each tree once, with what was kept in words."""
    seen: set[tuple[tuple[bytes, Content], ...]] = set()
    for words, choose in _choices(model, model.points(top), random_cuts, draws):
        tree = model.tree(choose, top)
        key = tuple(tree.items())
        if key not in seen:
            seen.add(key)
            yield words, tree


def _choices(model: Model, points: list[Point], random_cuts: random.Random, draws: int) -> Iterator[tuple[str, Choice]]:
    yield "nothing that was not synced is kept", durable
    yield "everything is kept", present
    yield "names are kept, contents that were not synced are lost", names_alone
    yield "contents are kept, names that were not synced are lost", contents_alone
    for point in points:
        for value in range(point.values - 1):
            yield f"all is kept but one change: {_described(model, point)}", _only(point, value, -1)
        for value in range(1, point.values):
            yield f"one change alone is kept: {_described(model, point)}", _only(point, value, 0)
    for draw in range(draws):
        chosen = {point: random_cuts.randrange(point.values) for point in points}
        yield f"draw {draw}", chosen.__getitem__


def _only(point: Point, value: int, others: int) -> Choice:
    return lambda other: value if other == point else others


def _described(model: Model, point: Point) -> str:
    path = model.path(point.inode)
    what = b"the content of " + path if point.name is None else b"the name " + point.name + b" in " + path
    return what.decode("utf-8", "backslashreplace")
