"""Draws the history of a run as an SVG picture: time across, steps up, a colour for each execution.

The picture has no script and loads nothing. Its colours follow the reader's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from publish.cli.timeline_scale import Point, Scale, ShowTime, escape, width_of
from publish.domain.light_typing import NamedTuple
from publish.domain.log import Publication

_WIDTH, _HEIGHT = 960, 420
# The room that the labels need: steps on the left, half a time on the right, the title above, times and legend below.
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 52, 56, 64
# More points than this are not told apart by the eye. All executions share them.
_MAX_POINTS = 400
# Room after a label, and the width of the line of a resume whose publication is not in the log.
_GAP, _STUB = 12, 24
_MAX_LEGEND = 8
_MAX_LABEL = 28
# Told apart also with a colour vision deficiency (after Okabe and Ito, 2008); each has a contrast of 3 or more on both
# papers (WCAG 2.2, section 1.4.11).
_COLOURS = ("#0077bb", "#d55e00", "#009068", "#c76b9f", "#8f7200", "#9467bd", "#777777", "#2a93c4")

_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-size: 15px; font-weight: 600 }
  .paper { fill: #fff }
  .grid { stroke: #ddd }
  .axis { stroke: #888 }
  .lost { stroke-dasharray: 2 4; stroke-width: 2 }
  .resume { stroke-dasharray: 5 3; stroke: #888; fill: none }
  .line { fill: none; stroke-width: 2 }
  .points { fill: none; stroke-width: 7; stroke-linecap: round }
  .start { fill: #fff; stroke-width: 2 }
  .latest { fill: none; stroke: #333; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd }
    .paper, .start { fill: #16181d }
    .grid { stroke: #333842 }
    .latest { stroke: #eee }
  }
"""


class Start(NamedTuple):
    """What the begin record of an execution tells."""

    attempt: str
    at: float
    """In seconds since the epoch of Unix."""
    resumed: int | None
    """The step that it resumed from; None: it started from step 0."""


class _Execution(NamedTuple):
    """One epoch; at least one of `start` and `publications` is there."""

    epoch: int
    colour: str
    start: Start | None
    publications: list[Publication]


def draw(log: Sequence[Publication], starts: Mapping[int, Start], show_time: ShowTime) -> str:
    """The picture of `log`, which is in the log's order, and of the executions since its first one.

    `starts`: the executions that have a begin record, by their epochs.
    """
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        "<title>history of the publications</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
    ]
    if log:
        parts += _Picture(log, starts, show_time).parts()
    else:
        parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT / 2}" text-anchor="middle">nothing is published yet</text>')
    return "\n".join([*parts, "</svg>", ""])


def _executions(log: Sequence[Publication], starts: Mapping[int, Start]) -> list[_Execution]:
    """Every execution from the first one in the log on: prune has removed what the earlier ones published."""
    publications: dict[int, list[Publication]] = {}
    for one in log:
        publications.setdefault(one.entry.epoch, []).append(one)
    first = min(publications)
    epochs = sorted(publications.keys() | {epoch for epoch in starts if epoch > first})
    return [
        _Execution(epoch, _COLOURS[number % len(_COLOURS)], starts.get(epoch), publications.get(epoch, []))
        for number, epoch in enumerate(epochs)
    ]


class _Picture:
    def __init__(self, log: Sequence[Publication], starts: Mapping[int, Start], show_time: ShowTime) -> None:
        self._log = log
        self._executions = _executions(log, starts)
        begun = [one.start for one in self._executions if one.start is not None]
        self._scale = Scale(
            times=[*(one.created for one in log), *(start.at for start in begun)],
            steps=[*(one.entry.step for one in log), *(start.resumed or 0 for start in begun)],
            left=_LEFT,
            right=_WIDTH - _RIGHT,
            top=_TOP,
            bottom=_HEIGHT - _BOTTOM,
            show_time=show_time,
        )
        self._label_ends = 0.0

    def parts(self) -> Iterable[str]:
        latest = self._log[-1]
        title = f"Publications: {len(self._log)}, latest step {latest.entry.step} of epoch {latest.entry.epoch}"
        idle = sum(not one.publications for one in self._executions)
        yield f'<text class="title" x="{self._scale.left}" y="24">{title}' + (
            f"; executions without a publication: {idle}</text>" if idle else "</text>"
        )
        yield from self._scale.axes()
        yield from self._resumes()
        for execution in self._executions:
            yield from self._line(execution)
        x, y = self._place(latest)
        yield f'<circle class="latest" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        yield from self._legend()

    def _line(self, execution: _Execution) -> Iterable[str]:
        """From the start, where it is known, through the publications."""
        colour, publications = execution.colour, execution.publications
        most = max(2, _MAX_POINTS * len(publications) // len(self._log))
        points = [self._place(one) for one in _thinned(publications, most)]
        # A clock that was set back would draw a start after what came of it.
        start = self._start(execution)
        begins = [start] if start is not None and all(start.x <= point.x for point in points[:1]) else []
        if points:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*begins, *points])
            yield f'<polyline class="line" stroke="{colour}" points="{path}"/>'
            # A line of no length with round ends is a dot (SVG 2, section 13.5.4).
            dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
            yield f'<path class="points" stroke="{colour}" d="{dots}"/>'
        for x, y in begins:
            yield f'<circle class="start" stroke="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'

    def _resumes(self) -> Iterable[str]:
        """For each execution where it resumed from, and what the one before it had published and was lost."""
        at_step: dict[int, Publication] = {}
        before: Publication | None = None
        for execution in self._executions:
            start, publications = execution.start, execution.publications
            if start is not None and start.resumed is not None:
                first = self._place(publications[0]).x if publications else None
                begins = self._scale.across(start.at)
                end = begins if first is None else min(begins, first)
                resumed = at_step.get(start.resumed)
                x = self._place(resumed).x if resumed else max(self._scale.left, end - _STUB)
                yield f'<path class="resume" d="M{x:.1f} {self._scale.height(start.resumed):.1f} H{end:.1f}"/>'
                if publications and before is not None and before.entry.step > start.resumed:
                    yield from self._lost(execution.colour, end, start.resumed, before.entry.step)
            at_step.update((one.entry.step, one) for one in publications)
            before = publications[-1] if publications else before

    def _lost(self, colour: str, x: float, step: int, end: int) -> Iterable[str]:
        bottom, top = self._scale.height(step), self._scale.height(end)
        yield f'<path class="lost" stroke="{colour}" d="M{x:.1f} {bottom:.1f} V{top:.1f}"/>'
        # Below the resume, where no line is. One label where several would cover each other.
        y = bottom + 16 if bottom + 16 < self._scale.bottom else bottom - 6
        label = f"{end - step} steps lost"
        begins = min(x, _WIDTH - _GAP - width_of(label))
        if begins >= self._label_ends:
            self._label_ends = begins + width_of(label) + _GAP
            yield f'<text x="{begins:.1f}" y="{y:.1f}">{label}</text>'

    def _legend(self) -> Iterable[str]:
        """The newest executions; a ring for one that published nothing."""
        y = _HEIGHT - 16
        shown = self._executions[-_MAX_LEGEND:]
        left = self._scale.left
        width = (_WIDTH - left - _RIGHT) / max(len(shown), 4)
        for place, execution in enumerate(shown):
            label = f"epoch {execution.epoch}" + (f", {execution.start.attempt}" if execution.start else "")
            room = max(6, min(_MAX_LABEL, int(width / width_of("0")) - 2))
            short = label if len(label) <= room else label[: room - 1] + "…"
            x = left + place * width
            dot = (
                f'fill="{execution.colour}"' if execution.publications else f'class="start" stroke="{execution.colour}"'
            )
            yield f'<circle {dot} cx="{x:.1f}" cy="{y - 4}" r="4"/>'
            yield f'<text x="{x + 9:.1f}" y="{y}"><title>{escape(label)}</title>{escape(short)}</text>'

    def _start(self, execution: _Execution) -> Point | None:
        start = execution.start
        return None if start is None else Point(self._scale.across(start.at), self._scale.height(start.resumed or 0))

    def _place(self, one: Publication) -> Point:
        return Point(self._scale.across(one.created), self._scale.height(one.entry.step))


def _thinned(publications: Sequence[Publication], most: int) -> Sequence[Publication]:
    """At most `most` of them (2 or more), the first and the last included."""
    if len(publications) <= most:
        return publications
    stride = -(-(len(publications) - 1) // (most - 1))
    return [*publications[:-1:stride], publications[-1]]
