"""The life of a watch: scan, wait, scan; when told to stop, finish, scan once more and end (watch.6)."""

from __future__ import annotations

from time import monotonic

from publish.cli import options, wiring
from publish.cli.deadline import Deadline
from publish.cli.signals import Stop
from publish.cli.site import Done, Job, Site
from publish.domain.entry import overlap, spell
from publish.domain.errors import Misconfigured
from publish.domain.ports import Area
from publish.domain.root import PosixRoot
from publish.domain.saves import FRAMEWORKS
from publish.domain.watch import Watch


def watch(wanted: options.Watch, job: Job) -> Done:
    """Publishes saves until a signal. Raises PublishError."""
    stop = Stop()
    deadline = Deadline(job.started, job.common.timeout)
    root = job.root
    if isinstance(root, PosixRoot):
        # How long a directory may hang is its mount's business; only the way out is bounded.
        bounded = False
        site = wiring.directory(job, root, deadline.at_request)
        scans = _begin(wanted, site)
    else:
        bounded = True
        bucket, items = root, wiring.sources(job)
        deadline.at_source("before the first source")
        site = deadline.hold(lambda: wiring.bucket(job, bucket, items, deadline, lasting=True).site)
        scans = deadline.hold(lambda: _begin(wanted, site))
    while True:
        last = stop.asked
        began = monotonic()
        if bounded or last:
            deadline.restart()
            site.ask.start_over()
            deadline.hold(scans.scan)
        else:
            scans.scan()
        if last:
            return Done()
        stop.wait(began + wanted.interval - monotonic())


def _begin(wanted: options.Watch, site: Site) -> Watch:
    if wanted.saves is None:
        saves = site.locate(site.root.render(b"exec/" + (wanted.attempt or b"")))
    else:
        saves = site.locate(wanted.saves)
    for area in Area:
        if saves and overlap(saves, area.value):
            raise Misconfigured(f"the folder {spell(area.value)} is publish's own and holds no saves: {spell(saves)}")
    scans = Watch(site.ask, site.report, site.root, FRAMEWORKS[wanted.framework], saves, wanted.epoch)
    scans.begin()
    return scans
