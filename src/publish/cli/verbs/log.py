"""`publish log`: list the publications."""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from time import gmtime, strftime

from publish.cli import backends
from publish.cli.goflag import Flag, boolean, path, positive
from publish.cli.output import escape
from publish.cli.verbs.common import CHECKPOINT, EXIT_OK, S3_FLAGS, Invocation, Verb
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError
from publish.domain.log import Publication, read_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from publish.cli.backends import OpenRoot
    from publish.domain.executions import Begun

_MINUTE, _DAY = 60, 86400
# As many as Linux follows (path_resolution(7)).
_MOST_LINKS = 40

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
        _write_picture(picture, log, executions)
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


def _write_picture(file: bytes, log: list[Publication], executions: list[Begun]) -> None:
    """Written to a temporary name and renamed, so that no reader sees half of it. Raises ConfigError.

    A symbolic link stays one. A device or a pipe is refused, because the rename would put a file in its place.
    """
    from publish.domain.timeline import Start, draw

    starts = {
        execution.epoch: Start(to_text(execution.attempt), at, execution.resume.step if execution.resume else None)
        for execution, at in executions
    }
    temporary = b""
    try:
        target = _behind_links(file)
        if os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)):
            raise ConfigError(f"cannot write the picture (not a regular file): {to_text(file)}")
        temporary = b"%s.%s.tmp" % (target, os.urandom(8).hex().encode())
        # Exclusively: in a folder that others can write to, the name may be a link of theirs.
        with open(temporary, "x", encoding="utf-8") as picture:
            picture.write(draw(log, starts, _label))
        os.replace(temporary, target)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise ConfigError(f"cannot write the picture ({error.strerror}): {to_text(file)}") from error


def _behind_links(file: bytes) -> bytes:
    """Where the symbolic link `file` leads; `file` itself if it is not one. Raises ConfigError and OSError.

    Another user's link is not followed: in a folder that they may write to, it could lead to any file of this user.
    The kernel refuses that in /tmp for open(2), but not for the rename (proc_sys_fs(5), protected_symlinks).
    """
    path = file
    for _ in range(_MOST_LINKS):
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(status.st_mode):
            return path
        if status.st_uid not in (os.geteuid(), 0):
            raise ConfigError(
                f"cannot write the picture (a symbolic link of another user, uid {status.st_uid}): {to_text(path)}"
            )
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


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
