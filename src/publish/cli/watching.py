"""The life of a watch: scan, wait, scan; when told to stop, finish, scan once more and end (watch.6)."""

from __future__ import annotations

from time import monotonic

from publish.cli import options, wiring
from publish.cli.deadline import Deadline
from publish.cli.signals import Stop
from publish.cli.site import Done, Job, Site
from publish.domain.entry import overlap, to_text
from publish.domain.errors import ConfigError
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.ports import Namespace
from publish.domain.root import PosixRoot
from publish.domain.watch import Watcher


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
            site.store.restart()
            deadline.hold(scans.scan)
        else:
            scans.scan()
        if last:
            return Done()
        stop.wait(began + wanted.interval - monotonic())


def _begin(wanted: options.Watch, site: Site) -> Watcher:
    if wanted.saves is None:
        saves = site.locate(site.root.render(b"exec/" + (wanted.attempt or b"")))
    else:
        saves = site.locate(wanted.saves)
    for area in Namespace:
        if saves and overlap(saves, area.value):
            raise ConfigError(f"the folder {to_text(area.value)} is publish's own and holds no saves: {to_text(saves)}")
    scans = Watcher(site.store, site.report, site.root, FRAMEWORKS[wanted.framework], saves, wanted.epoch)
    scans.begin()
    return scans
