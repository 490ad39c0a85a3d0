"""What an errno means for the caller."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from publish.domain.errors import NotApplied, OutcomeUnknown, PermanentFault, StoreFault

# ENAMETOOLONG: nothing can be there.
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
# ESTALE: on NFS, what another node removed while it was looked at.
NOT_THERE = (*ABSENT, errno.ESTALE)

TRANSIENT_ON_READ = frozenset(
    (errno.ESTALE, errno.ETIMEDOUT, errno.EIO, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
)
"""What may pass: a server that restarts, a node short of memory or descriptors (nfs.6)."""

STALE = frozenset((errno.ESTALE,))
"""What the NFS client itself could not mend by asking once more."""

_HINT_FULL = " (make room by hand, then run publish prune)"
_HINTS = {errno.ENOSPC: _HINT_FULL, errno.EDQUOT: _HINT_FULL}


def to_fault(step: str, error: OSError, transient: Collection[int], *, writes: bool) -> StoreFault:
    """The fault for `step`; `writes`: it may have had its effect, as on NFS when a reply is lost."""
    message = _describe(step, error)
    if error.errno not in transient or (writes and error.errno == errno.EIO):
        return PermanentFault(message)
    return OutcomeUnknown(message) if writes else NotApplied(message)


@contextmanager
def ignoring_absence() -> Iterator[None]:
    """Suppresses the OSErrors that say that nothing is there."""
    try:
        yield
    except OSError as error:
        if error.errno not in NOT_THERE:
            raise


@contextmanager
def final(step: str, fault: type[PermanentFault] = PermanentFault) -> Iterator[None]:
    """Every OSError inside is `fault`: for syncs, which must not be tried again.

    Linux says it once, and the next sync succeeds although the data is lost (fsync(2), EIO).
    """
    try:
        yield
    except OSError as error:
        raise fault(_describe(step, error)) from error


def _describe(step: str, error: OSError) -> str:
    return f"{step}: {error.strerror}{_HINTS.get(error.errno or 0, '')}"
