"""Draws the history of a run as an SVG picture: time across, steps up, a colour for each execution.

The picture has no script and loads nothing. Its colours follow the reader's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from publish.domain.light_typing import NamedTuple
from publish.domain.log import Publication

_WIDTH, _HEIGHT = 960, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 52, 56, 64
_MAX_TICKS = 6
# Seconds from one label of the time axis to the next: what clocks and calendars are divided into.
_INTERVALS = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86400 * days for days in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)),
)
# More points than this are not told apart by the eye. All executions share them.
_MAX_POINTS = 400
# The width of a label such as "1200 steps lost", and of the line of a resume whose publication is not in the log.
_LABEL_WIDTH, _STUB = 110, 24
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
  .points { fill: none; stroke-width: 7; stroke-linecap: round }
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


ShowTime = Callable[[float, float], str]
"""Writes a time in seconds as text for people, given the seconds to the next label."""


def draw(log: Sequence[Publication], began: Began, show_time: ShowTime) -> str:
    """The picture of `log`, which is in the log's order."""
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
    def __init__(self, log: Sequence[Publication], began: Began, show_time: ShowTime) -> None:
        self._log = log
        self._began = began
        self._show_time = show_time
        self._executions = [
            (epoch, list(publications)) for epoch, publications in groupby(log, key=lambda one: one.entry.epoch)
        ]
        times = [one.created for one in log]
        steps = [one.entry.step for one in log]
        steps += [step for epoch, _ in self._executions if (step := self._resumed(epoch)) is not None]
        self._first, self._span = min(times), max(max(times) - min(times), 1.0)
        self._lowest, self._rise = min(steps), max(max(steps) - min(steps), 1)
        self._label_ends = 0.0

    def _resumed(self, epoch: int) -> int | None:
        return self._began.get(epoch, ("", None))[1]

    def parts(self) -> Iterable[str]:
        yield f'<text class="title" x="{_LEFT}" y="24">Publications: {len(self._log)}, '
        yield f"latest step {self._log[-1].entry.step} of epoch {self._log[-1].entry.epoch}</text>"
        yield from self._axes()
        yield from self._resumes()
        for number, (_, publications) in enumerate(self._executions):
            yield from self._line(_COLOURS[number % len(_COLOURS)], publications)
        x, y = self._place(self._log[-1])
        yield f'<circle class="latest" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        yield from self._legend()

    def _axes(self) -> Iterable[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        for step in _multiples(_round_interval(self._rise), self._lowest, self._lowest + self._rise):
            y = self._height(step)
            yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{step}</text>'
        interval = next((one for one in _INTERVALS if self._span / one < _MAX_TICKS), _INTERVALS[-1])
        for seconds in _multiples(interval, self._first, self._first + self._span):
            x = self._across(seconds)
            yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 5}"/>'
            time = _escape(self._show_time(seconds, interval))
            yield f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{time}</text>'
        yield f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
        yield f'<text x="{_LEFT - 8}" y="{_TOP - 16}" text-anchor="end">step</text>'

    def _line(self, colour: str, publications: Sequence[Publication]) -> Iterable[str]:
        most = max(2, _MAX_POINTS * len(publications) // len(self._log))
        points = [self._place(one) for one in _thinned(publications, most)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline class="line" stroke="{colour}" points="{path}"/>'
        # A line of no length with round ends is a dot (SVG 2, section 13.5.4).
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
        yield f'<path class="points" stroke="{colour}" d="{dots}"/>'

    def _resumes(self) -> Iterable[str]:
        """For each execution where it resumed from, and what the one before it had published and was lost."""
        at_step: dict[int, Publication] = {}
        before: Publication | None = None
        for number, (epoch, publications) in enumerate(self._executions):
            step, first = self._resumed(epoch), self._place(publications[0])
            if step is not None:
                x = self._place(at_step[step]).x if step in at_step else max(float(_LEFT), first.x - _STUB)
                y = self._height(step)
                yield f'<path class="resume" d="M{x:.1f} {y:.1f} H{first.x:.1f} V{first.y:.1f}"/>'
                if before is not None and before.entry.step > step:
                    yield from self._lost(_COLOURS[number % len(_COLOURS)], first.x, step, before.entry.step)
            at_step.update((one.entry.step, one) for one in publications)
            before = publications[-1]

    def _lost(self, colour: str, x: float, step: int, end: int) -> Iterable[str]:
        bottom, top = self._height(step), self._height(end)
        yield f'<path class="lost" stroke="{colour}" d="M{x:.1f} {bottom:.1f} V{top:.1f}"/>'
        # Below the resume, where no line is. One label where several would cover each other.
        y = bottom + 16 if bottom + 16 < _HEIGHT - _BOTTOM else bottom - 6
        start = min(x, _WIDTH - _LABEL_WIDTH)
        if start >= self._label_ends:
            self._label_ends = start + _LABEL_WIDTH
            yield f'<text x="{start:.1f}" y="{y:.1f}">{end - step} steps lost</text>'

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
        return Point(self._across(one.created), self._height(one.entry.step))

    def _across(self, seconds: float) -> float:
        share = (seconds - self._first) / self._span
        return _LEFT + share * (_WIDTH - _RIGHT - _LEFT)

    def _height(self, step: int) -> float:
        share = (step - self._lowest) / self._rise
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def _thinned(publications: Sequence[Publication], most: int) -> Sequence[Publication]:
    """At most `most` of them (2 or more), the first and the last included."""
    if len(publications) <= most:
        return publications
    stride = -(-(len(publications) - 1) // (most - 1))
    return [*publications[:-1:stride], publications[-1]]


def _round_interval(rise: int) -> int:
    """The steps from one label to the next: 1, 2 or 5 times a power of 10."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if rise // (factor * power) < _MAX_TICKS:
                return factor * power
        power *= 10


def _multiples(interval: int, first: float, last: float) -> Sequence[int]:
    """Every multiple of `interval` from `first` to `last`."""
    return range(-int(-first // interval) * interval, int(last // interval) * interval + 1, interval)


def _escape(text: str) -> str:
    """Text for XML 1.0 (sections 2.2 and 2.4): what it has no character for becomes a question mark."""
    shown = "".join(char if _is_xml_character(char) else "?" for char in text)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _is_xml_character(char: str) -> bool:
    return char >= " " and not "\ud800" <= char <= "\udfff" and char not in "\ufffe\uffff"
