"""The axes of the picture of a run: where times and steps are, and how they are labelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from publish.domain.light_typing import NamedTuple

_MAX_TICKS = 6
# Seconds from one label of the time axis to the next: what clocks and calendars are divided into.
_INTERVALS = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86400 * days for days in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)),
    *(86400 * days for days in (20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)),
)
# The widest digit of common fonts at 12 pixels, in pixels, and the room between a label and the picture.
_DIGIT, _MARGIN = 8, 8

ShowTime = Callable[[float, float], str]
"""Writes a time in seconds as text for people, given the seconds to the next label."""


class Point(NamedTuple):
    """A place in the picture."""

    x: float
    y: float


class Scale:
    """Where times and steps are in a picture whose edges are given in pixels."""

    def __init__(
        self,
        *,
        times: Sequence[float],
        steps: Sequence[int],
        left: float,
        right: float,
        top: float,
        bottom: float,
        show_time: ShowTime,
    ) -> None:
        """`left` is moved to the right where the labels of the steps need more room."""
        self._first, self._span = min(times), max(max(times) - min(times), 1.0)
        self._lowest, self._rise = min(steps), max(max(steps) - min(steps), 1)
        self._show_time = show_time
        labels = (width_of(str(step)) for step in self._labelled_steps())
        self.left = max(left, max(labels, default=0) + 2 * _MARGIN)
        self.right, self.top, self.bottom = right, top, bottom

    def across(self, seconds: float) -> float:
        """The x of a time."""
        return self.left + (seconds - self._first) / self._span * (self.right - self.left)

    def height(self, step: int) -> float:
        """The y of a step."""
        return self.bottom - (step - self._lowest) / self._rise * (self.bottom - self.top)

    def axes(self) -> Iterable[str]:
        """Both axes with round numbers."""
        for step in self._labelled_steps():
            y = self.height(step)
            yield f'<line class="grid" x1="{self.left}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text x="{self.left - _MARGIN}" y="{y + 4:.1f}" text-anchor="end">{step}</text>'
        interval = next((one for one in _INTERVALS if self._span / one < _MAX_TICKS), _INTERVALS[-1])
        for seconds in _multiples(interval, self._first, self._first + self._span):
            x = self.across(seconds)
            yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{self.bottom}" y2="{self.bottom + 5}"/>'
            time = escape(self._show_time(seconds, interval))
            yield f'<text x="{x:.1f}" y="{self.bottom + 20}" text-anchor="middle">{time}</text>'
        yield f'<line class="axis" x1="{self.left}" x2="{self.right}" y1="{self.bottom}" y2="{self.bottom}"/>'
        yield f'<text x="{self.left - _MARGIN}" y="{self.top - 16}" text-anchor="end">step</text>'

    def _labelled_steps(self) -> Sequence[int]:
        return _multiples(_round_interval(self._rise), self._lowest, self._lowest + self._rise)


def width_of(text: str) -> float:
    """The room that a text of 12 pixels needs at most, if it is mostly digits."""
    return _DIGIT * len(text)


def escape(text: str) -> str:
    """Text for XML 1.0 (sections 2.2 and 2.4); a question mark for what is not printable or turns text."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


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
