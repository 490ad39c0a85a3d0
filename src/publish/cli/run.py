"""What each verb does with a root, between its options and the use case in the domain."""

from __future__ import annotations

import gc

from publish.cli import wiring
from publish.cli.options import Options, Probe, Prune, Publish, Resolve, Watch
from publish.cli.site import Bucket, Done, Job, Site
from publish.domain.entry import Entry, to_text
from publish.domain.errors import ConfigError, UsageError
from publish.domain.root import S3Root


def verb(wanted: Options, job: Job) -> Done:
    """Does it. Raises PublishError, and UsageError where the root is not of the kind that the verb takes."""
    gc.enable()
    if isinstance(wanted, Watch):
        from publish.cli import watching  # noqa: PLC0415  (start-up: brings threads)

        return watching.watch(wanted, job)
    if isinstance(job.root, S3Root):
        return _on_bucket(wanted, job, job.root)
    if isinstance(wanted, Probe):
        raise UsageError("probe is for S3 roots only, and the root is a directory")
    return _on_site(wanted, wiring.directory(job, job.root))


def _on_bucket(wanted: Resolve | Publish | Prune | Probe, job: Job, root: S3Root) -> Done:
    """The verb, its credentials and its probe included, held to `-timeout`."""
    from publish.cli.deadline import Deadline  # noqa: PLC0415  (start-up: brings threads)

    items = wiring.sources(job)
    deadline = Deadline(job.started, job.common.timeout)
    deadline.at_source("before the first source")

    def work() -> Done:
        bucket = wiring.bucket(job, root, items, deadline)
        if isinstance(wanted, Probe):
            return Done(_probe(bucket))
        if isinstance(wanted, Resolve) and wanted.probe:
            job.output.note(to_text(_probe(bucket)))
        return _on_site(wanted, bucket.site)

    return deadline.hold(work)


def _probe(bucket: Bucket) -> bytes:
    bucket.probe()
    root = bucket.site.root.render(b"")
    return b"probed %s with the credentials of %s" % (root, bucket.source.encode("utf-8", "surrogateescape"))


def _on_site(wanted: Resolve | Publish | Prune, site: Site) -> Done:
    if isinstance(wanted, Resolve):
        return _resolve(site)
    if isinstance(wanted, Publish):
        return _publish(wanted, site)
    return _prune(wanted, site)


def _resolve(site: Site) -> Done:
    from publish.domain.resolve import latest  # noqa: PLC0415  (start-up: each verb brings its own)

    entry = latest(site.store)
    return Done(None if entry is None else site.root.render(entry.path))


def _publish(wanted: Publish, site: Site) -> Done:
    from publish.domain.publish import publish_save  # noqa: PLC0415  (start-up)

    path = site.locate(wanted.save)
    if not path:
        raise ConfigError(f"the root itself is no save: {to_text(wanted.save)}")
    publish_save(site.store, site.report, Entry.of(wanted.epoch, wanted.step, path))
    return Done()


def _prune(wanted: Prune, site: Site) -> Done:
    from publish.domain.prune import prune  # noqa: PLC0415  (start-up)

    return Done(complete=prune(site.store, site.report, wanted.keep, site.parallel))
