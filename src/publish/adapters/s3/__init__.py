"""S3 and its compatible stores behind the domain's ports."""

from publish.adapters.s3.client import Line
from publish.adapters.s3.store import S3Store

__all__ = ["Line", "S3Store"]
