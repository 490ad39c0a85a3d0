"""A checkpoint root that is a directory: local disk, NFS, Lustre, GPFS."""

from publish.adapters.posix.store import PosixStore, leads_to

__all__ = ["PosixStore", "leads_to"]
