"""The deletion of objects, in batches where the store supports them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from publish.adapters.s3.bucket import Bucket
from publish.adapters.s3.errors import BATCH_DELETE_UNSUPPORTED, code_and_message, is_not_found
from publish.domain.errors import AlreadyExists, Conflict, PermanentFault

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ErrorTypeDef

# AWS, "DeleteObjects".
MAX_BATCH = 1_000
# Characters that XML 1.0 cannot represent (section 2.2): one such key invalidates a whole batch.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# What urllib3, proxies and stores on a directory remove from a URL, so that it names another key.
_LOST_SEGMENT = re.compile(r"(?:\A|/)\.\.?(?:/|\Z)|//|\A/")


class Deleter:
    """Deletes objects of one bucket, and remembers whether the store supports batches."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._batches = True

    def delete(self, keys: list[str]) -> dict[str, PermanentFault]:
        """Deletes at most 1,000 keys. Returns those that the store refuses to delete, each with the reason."""
        failed: dict[str, PermanentFault] = {}
        singly = keys
        if self._batches:
            batch = [key for key in keys if not _NOT_IN_XML.search(key)]
            # A single request is cheaper to check for both sides, but its URL cannot hold every key.
            worthwhile = len(batch) > 1 or any(map(_LOST_SEGMENT.search, batch))
            if worthwhile and (answered := self._delete_batch(batch)) is not None:
                failed = answered
                singly = [key for key in keys if _NOT_IN_XML.search(key)]
        for key in singly:
            try:
                self.delete_one(key)
            except PermanentFault as fault:
                failed[key] = fault
        return failed

    def delete_one(self, key: str) -> None:
        """Deletes one object if it exists."""
        if _LOST_SEGMENT.search(key):
            request = self._bucket.describe("DELETE", key)
            raise PermanentFault(f"{request}: refusing to delete a key with an empty, . or .. segment by its URL")
        with self._bucket.translate_errors("DELETE", key, write=True):
            try:
                self._bucket.client.delete_object(Bucket=self._bucket.name, Key=key)
            except ClientError as error:
                if not is_not_found(error):
                    raise

    def _delete_batch(self, keys: list[str]) -> dict[str, PermanentFault] | None:
        """As `delete`, in one request. None if the store does not support it."""
        with self._bucket.translate_errors("DELETE", f"{keys[0]} and {len(keys) - 1} more", write=True):
            try:
                response = self._bucket.client.delete_objects(
                    Bucket=self._bucket.name, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
                )
            except ClientError as error:
                code, _ = code_and_message(error)
                if code not in BATCH_DELETE_UNSUPPORTED:
                    raise
                # MalformedXML may be due to one key of this batch.
                self._batches = code == "MalformedXML"
                return None
        return dict(self._parse_failures(response.get("Errors", ())))

    def _parse_failures(self, errors: Iterable[ErrorTypeDef]) -> Iterator[tuple[str, PermanentFault]]:
        for error in errors:
            key, code = error.get("Key", ""), error.get("Code", "")
            if code == "NoSuchKey":
                continue
            request = self._bucket.describe("DELETE", key)
            fault = self._bucket.errors.translate_code(code, error.get("Message", ""), 0, request, write=True)
            if isinstance(fault, AlreadyExists | Conflict):
                fault = PermanentFault(str(fault))
            if not isinstance(fault, PermanentFault):
                # The whole batch may succeed when repeated, which is harmless.
                raise fault
            yield key, fault
