"""`publish log`: list the publications."""

from __future__ import annotations

import json
from time import gmtime, strftime

from publish.cli import backends
from publish.cli.goflag import Flag, boolean, path, positive
from publish.cli.output import escape
from publish.cli.verbs.common import CHECKPOINT, EXIT_OK, S3_FLAGS, Invocation, Verb
from publish.domain.entry import to_text
from publish.domain.log import Publication, read_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends.backend import OpenRoot
    from publish.domain.executions import Begun

_MINUTE, _DAY = 60, 86400

JSON = Flag("json", boolean, "", "print one JSON object a line", default="false")
LAST = Flag("n", positive, "N", "print the last N publications only")
SVG = Flag("svg", path, "FILE", "also write a picture of the run's history")


def run(invocation: Invocation) -> int:
    """Prints the publications, the latest last. Raises PublishError."""
    line = invocation.line
    as_json, last, picture = line[JSON], line.get(LAST), line.get(SVG)

    def read(opened: OpenRoot) -> tuple[OpenRoot, list[Publication], list[Begun]]:
        return opened, read_log(opened.store), _executions(opened) if picture is not None else []

    opened, log, executions = backends.run(invocation, read)
    if picture is not None:
        backends.replace_file(picture, _draw(log, executions))
    for publication in log[-last if last else 0 :]:
        latest = publication is log[-1]
        invocation.output.print_result(
            _json(opened, publication, latest=latest) if as_json else _text(opened, publication, latest=latest)
        )
    return EXIT_OK


def _executions(opened: OpenRoot) -> list[Begun]:
    from publish.domain.executions import all_executions

    return all_executions(opened.store)


def _text(opened: OpenRoot, publication: Publication, *, latest: bool) -> bytes:
    entry = publication.entry
    mark = "  (latest)" if latest else ""
    save = to_text(opened.root.render(entry.path))
    return escape(f"{_time(publication)}  epoch {entry.epoch}  step {entry.step}  {save}{mark}")


def _json(opened: OpenRoot, publication: Publication, *, latest: bool) -> bytes:
    entry = publication.entry
    fields = {
        "entry": to_text(entry.name),
        "epoch": entry.epoch,
        "step": entry.step,
        "save": to_text(opened.root.render(entry.path)),
        "published_at": _time(publication),
        "latest": latest,
    }
    return json.dumps(fields).encode()


def _time(publication: Publication) -> str:
    """RFC 3339, in UTC."""
    year, month, day, hour, minute, second = gmtime(publication.created)[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"


def _draw(log: list[Publication], executions: list[Begun]) -> str:
    from publish.cli.timeline import Start, draw

    starts = {
        execution.epoch: Start(to_text(execution.attempt), at, execution.resume.step if execution.resume else None)
        for execution, at in executions
    }
    return draw(log, starts, _label)


def _label(seconds: float, interval: float) -> str:
    """A time in UTC, as exact as labels that are `interval` seconds apart need it."""
    shape = "%b %d %H:%M:%S" if interval < _MINUTE else "%b %d %H:%M" if interval < _DAY else "%Y-%m-%d"
    return strftime(shape, gmtime(seconds))


VERB = Verb(
    "log",
    run,
    "list the publications",
    (
        "Prints one line for each publication, the latest last and marked: its time in UTC, epoch, step and save.",
        "With -json, one object a line with entry, epoch, step, save, published_at and latest. With -svg, also a",
        "picture: time across, steps up, a colour for each execution, where each resumed from and what was lost.",
    ),
    (CHECKPOINT, JSON, LAST, SVG, *S3_FLAGS),
    "publish log -checkpoint /data/run-7 -n 5",
    success="the log is printed, or nothing is published yet",
)
