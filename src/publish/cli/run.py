"""What each verb does with a root, between its options and the use case in the domain."""

from __future__ import annotations

from collections.abc import Callable

from publish.cli import wiring
from publish.cli.options import Options, Prune, Publish, Resolve, Watch
from publish.cli.site import Done, Job, Site
from publish.domain.entry import Entry, spell
from publish.domain.errors import Misconfigured
from publish.domain.root import PosixRoot


def verb(wanted: Options, job: Job) -> Done:
    """Does it. Raises PublishError."""
    if isinstance(wanted, Watch):
        from publish.cli import watching  # noqa: PLC0415  (start-up: brings threads)

        return watching.watch(wanted, job)
    if isinstance(wanted, Resolve):
        return _on_site(job, lambda site: _resolve(wanted, site, job))
    if isinstance(wanted, Publish):
        return _on_site(job, lambda site: _publish(wanted, site))
    if isinstance(wanted, Prune):
        return _on_site(job, lambda site: _prune(wanted, site))
    return _on_site(job, lambda site: Done(_probe(site)))


def _on_site(job: Job, work: Callable[[Site], Done]) -> Done:
    """`work` on the job's root, held to `-timeout` where that is a store."""
    if isinstance(job.root, PosixRoot):
        return work(wiring.directory(job, job.root))
    root = job.root
    from publish.cli.deadline import Deadline  # noqa: PLC0415  (start-up: brings threads)

    deadline = Deadline(job.started, job.common.timeout)
    return deadline.hold(lambda: work(wiring.bucket(job, root, deadline)))


def _resolve(wanted: Resolve, site: Site, job: Job) -> Done:
    from publish.domain.resolve import latest  # noqa: PLC0415  (start-up: each verb brings its own)

    if wanted.probe:
        job.output.note(spell(_probe(site)))
    entry = latest(site.ask)
    return Done(None if entry is None else site.root.render(entry.path))


def _publish(wanted: Publish, site: Site) -> Done:
    from publish.domain.append import publish_save  # noqa: PLC0415  (start-up)

    path = site.locate(wanted.save)
    if not path:
        raise Misconfigured(f"the root itself is no save: {spell(wanted.save)}")
    publish_save(site.ask, site.report, Entry.of(wanted.epoch, wanted.step, path))
    return Done()


def _prune(wanted: Prune, site: Site) -> Done:
    from publish.domain.sweep import prune  # noqa: PLC0415  (start-up)

    return Done(complete=prune(site.ask, site.report, wanted.keep, site.parallel))


def _probe(site: Site) -> bytes:
    raise Misconfigured("probe is not built yet")
