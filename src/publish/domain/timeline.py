"""Draws the history of a run as an SVG picture: time across, steps up, a colour for each execution.

The picture has no script and loads nothing. Its colours follow the reader's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from publish.domain.light_typing import NamedTuple
from publish.domain.log import Publication

_WIDTH, _HEIGHT = 960, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 24, 56, 64
_TICKS = 5
# More points than this on one line are not told apart by the eye.
_MAX_POINTS = 400
_MAX_LEGEND = 8
_MAX_LABEL = 28
# Told apart also with a colour vision deficiency (Okabe and Ito, 2008), light and dark scheme.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a5195", "#666666")

_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-size: 15px; font-weight: 600 }
  .paper { fill: #fff }
  .grid { stroke: #ddd }
  .axis { stroke: #888 }
  .lost { stroke-dasharray: 2 4; stroke-width: 2; opacity: .55 }
  .resume { stroke-dasharray: 5 3; stroke: #888; fill: none }
  .line { fill: none; stroke-width: 2 }
  .latest { fill: none; stroke: #333; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd }
    .paper { fill: #16181d }
    .grid { stroke: #333842 }
    .latest { stroke: #eee }
  }
"""

Began = Mapping[int, tuple[str, int | None]]
"""For each epoch that began: the attempt, and the step that it resumed from (None: from the start)."""


class Point(NamedTuple):
    """A place in the picture."""

    x: float
    y: float


def draw(log: Sequence[Publication], began: Began, show_time: Callable[[float], str]) -> str:
    """The picture of `log`, which is in the log's order. `show_time` writes seconds as text for people."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        "<title>history of the publications</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
    ]
    if log:
        parts += _Picture(log, began, show_time).parts()
    else:
        parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT / 2}" text-anchor="middle">nothing is published yet</text>')
    return "\n".join([*parts, "</svg>", ""])


class _Picture:
    def __init__(self, log: Sequence[Publication], began: Began, show_time: Callable[[float], str]) -> None:
        self._log = log
        self._began = began
        self._show_time = show_time
        self._executions = [
            (epoch, list(publications)) for epoch, publications in groupby(log, key=lambda one: one.entry.epoch)
        ]
        times = [one.created for one in log]
        steps = [one.entry.step for one in log] + [
            step for epoch, (_, step) in began.items() if step is not None and self._has(epoch)
        ]
        self._first, self._span = min(times), max(max(times) - min(times), 1.0)
        self._lowest, self._rise = min(steps), max(max(steps) - min(steps), 1)

    def _has(self, epoch: int) -> bool:
        return any(epoch == one for one, _ in self._executions)

    def parts(self) -> Iterable[str]:
        yield f'<text class="title" x="{_LEFT}" y="24">Publications: {len(self._log)}, '
        yield f"latest step {self._log[-1].entry.step} of epoch {self._log[-1].entry.epoch}</text>"
        yield from self._axes()
        for number, (epoch, publications) in enumerate(self._executions):
            yield from self._execution(number, epoch, publications)
        x, y = self._place(self._log[-1])
        yield f'<circle class="latest" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        yield from self._legend()

    def _axes(self) -> Iterable[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        for tick in range(_TICKS):
            share = tick / (_TICKS - 1)
            x = _LEFT + share * (right - _LEFT)
            y = bottom - share * (bottom - _TOP)
            anchor = "start" if tick == 0 else "end" if tick == _TICKS - 1 else "middle"
            step = round(self._lowest + share * self._rise)
            yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{step}</text>'
            time = _escape(self._show_time(self._first + share * self._span))
            yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="{anchor}">{time}</text>'
        yield f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
        yield f'<text x="{_LEFT - 8}" y="{_TOP - 12}" text-anchor="end">step</text>'

    def _execution(self, number: int, epoch: int, publications: Sequence[Publication]) -> Iterable[str]:
        colour = _COLOURS[number % len(_COLOURS)]
        points = [self._place(one) for one in _thinned(publications)]
        resumed = self._began.get(epoch, ("", None))[1]
        if resumed is not None:
            yield from self._resume(colour, resumed, points[0], epoch)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline class="line" stroke="{colour}" points="{path}"/>'
        for x, y in points:
            yield f'<circle fill="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'

    def _resume(self, colour: str, step: int, first: Point, epoch: int) -> Iterable[str]:
        """Where the execution resumed from, and the steps published after it that were lost."""
        earlier = [one for one in self._log if one.entry.epoch < epoch]
        at_step = [one for one in earlier if one.entry.step == step]
        y = self._height(step)
        x = self._place(at_step[-1]).x if at_step else float(_LEFT)
        yield f'<path class="resume" d="M{x:.1f} {y:.1f} H{first.x:.1f} V{first.y:.1f}"/>'
        lost = max((one.entry.step for one in earlier), default=step)
        if lost > step:
            top = self._height(lost)
            yield f'<path class="lost" stroke="{colour}" d="M{first.x:.1f} {y:.1f} V{top:.1f}"/>'
            middle = (y + top) / 2
            yield f'<text x="{first.x - 6:.1f}" y="{middle:.1f}" text-anchor="end">{lost - step} steps lost</text>'

    def _legend(self) -> Iterable[str]:
        y = _HEIGHT - 16
        shown = self._executions[-_MAX_LEGEND:]
        width = (_WIDTH - _LEFT - _RIGHT) / max(len(shown), 4)
        for place, (epoch, _) in enumerate(shown):
            number = len(self._executions) - len(shown) + place
            attempt = self._began.get(epoch, ("", None))[0]
            label = f"epoch {epoch}" + (f", {attempt}" if attempt else "")
            room = max(6, min(_MAX_LABEL, int(width / 7) - 2))
            short = label if len(label) <= room else label[: room - 1] + "…"
            x = _LEFT + place * width
            yield f'<circle fill="{_COLOURS[number % len(_COLOURS)]}" cx="{x:.1f}" cy="{y - 4}" r="4"/>'
            yield f'<text x="{x + 9:.1f}" y="{y}"><title>{_escape(label)}</title>{_escape(short)}</text>'

    def _place(self, one: Publication) -> Point:
        share = (one.created - self._first) / self._span
        return Point(_LEFT + share * (_WIDTH - _RIGHT - _LEFT), self._height(one.entry.step))

    def _height(self, step: int) -> float:
        share = (step - self._lowest) / self._rise
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def _thinned(publications: Sequence[Publication]) -> Sequence[Publication]:
    """At most _MAX_POINTS of them, the first and the last included."""
    if len(publications) <= _MAX_POINTS:
        return publications
    stride = -(-len(publications) // (_MAX_POINTS - 1))
    return [*publications[:-1:stride], publications[-1]]


def _escape(text: str) -> str:
    """Text for XML 1.0 (sections 2.2 and 2.4): what it has no character for becomes a question mark."""
    shown = "".join(char if _is_xml_character(char) else "?" for char in text)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _is_xml_character(char: str) -> bool:
    return char >= " " and not "\ud800" <= char <= "\udfff" and char not in "\ufffe\uffff"
