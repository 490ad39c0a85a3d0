"""S3 and compatible stores."""

from publish.adapters.s3.client import ConnectionSettings
from publish.adapters.s3.store import S3Store

__all__ = ["ConnectionSettings", "S3Store"]
