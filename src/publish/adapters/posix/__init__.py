"""A checkpoint root that is a directory: local disk, NFS, Lustre, GPFS."""

from publish.adapters.posix.root import same_directory
from publish.adapters.posix.store import PosixStore

__all__ = ["PosixStore", "same_directory"]
