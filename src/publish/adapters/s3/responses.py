"""Checks every response of a store before it is believed: botocore accepts partial ones, and web pages.

docs/s3-quirks.md says which store needs which check.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

_OTHER_SUCCESSES = range(201, 300)
# Elements of a listed object that `publish` does not use. Parsing them takes longer than parsing the keys.
_UNUSED_ELEMENTS = re.compile(
    rb"<(LastModified|ETag|Size|StorageClass|Owner|ChecksumAlgorithm|ChecksumType)>.*?</\1>", re.DOTALL
)
# botocore reads any other word as false, which would end a listing early.
_IS_TRUNCATED = re.compile(rb"<IsTruncated>\s*(?:true|false)\s*</IsTruncated>")


class NotAnS3Response(Exception):
    """Something other than an S3 store responded, such as a web server."""


class IncompleteResponse(Exception):
    """Part of the response is missing."""


class Listing(NamedTuple):
    """A page of a listing: whole keys, common prefixes, and the token of the next page."""

    keys: list[str]
    prefixes: list[str]
    next_token: str | None


def validate_response(operation_model: Any, response_dict: dict[str, Any], **_: object) -> None:  # noqa: ANN401  (botocore's model)
    """The hook for botocore's `before-parse`. Raises NotAnS3Response or IncompleteResponse."""
    headers, body, status = response_dict["headers"], response_dict["body"], response_dict["status_code"]
    operation = operation_model.name
    if status == HTTPStatus.OK and _is_web_page(headers, body, operation):
        if not isinstance(body, bytes):
            body.close()
        raise NotAnS3Response("the response is a web page")
    if not isinstance(body, bytes) or operation_model.http["method"] == "HEAD":
        return
    length = headers.get("content-length", "")
    # A connection that breaks in the middle of the headers looks like the end of the headers.
    if length.isdigit() and len(body) < int(length):
        raise IncompleteResponse(f"received {len(body)} of {length} bytes")
    if status in _OTHER_SUCCESSES and operation in {"ListObjectsV2", "PutObject"}:
        raise IncompleteResponse(f"unexpected HTTP status {status}")
    if status == HTTPStatus.OK and b"<Error" not in body:
        response_dict["body"] = _validate_body(operation, body)


def _validate_body(operation: str, body: bytes) -> bytes:
    if operation == "ListObjectsV2":
        if b"<ListBucketResult" not in body or not _IS_TRUNCATED.search(body):
            raise IncompleteResponse("incomplete ListBucketResult")
        return body if b"<![CDATA[" in body else _UNUSED_ELEMENTS.sub(b"", body)
    # With Quiet, an empty DeleteResult is the only sign that S3 processed the request.
    if operation == "DeleteObjects" and b"DeleteResult" not in body:
        raise IncompleteResponse("the response has no DeleteResult")
    return body


def _is_web_page(headers: Mapping[str, str], body: object, operation: str) -> bool:
    # An object may itself be a web page, and moto labels the empty response to a put as one: both have an ETag.
    if "etag" in headers and (operation != "PutObject" or not body):
        return False
    return headers.get("content-type", "").lower().startswith("text/html")


def parse_listing(response: ListObjectsV2OutputTypeDef, prefix: str) -> Listing:
    """The page that a response holds. Raises IncompleteResponse, or NotAnS3Response for another prefix's keys."""
    if "IsTruncated" not in response:
        raise IncompleteResponse("the response has no IsTruncated")
    keys = [item["Key"] for item in response.get("Contents", ())]
    prefixes = [item["Prefix"] for item in response.get("CommonPrefixes", ())]
    token = response.get("NextContinuationToken") if response["IsTruncated"] else None
    if response["IsTruncated"] and not token:
        raise IncompleteResponse("the response has no NextContinuationToken")
    if not keys and not prefixes:
        if response.get("KeyCount"):
            raise IncompleteResponse("the response has KeyCount but no keys")
        if response.get("Prefix", prefix) not in (prefix, ""):
            raise IncompleteResponse("the response is for a different prefix")
    for key in (*keys, *prefixes):
        if not key.startswith(prefix):
            raise NotAnS3Response(f"the response lists a key outside the prefix: {key}")
    return Listing(keys, prefixes, token)


def require_etag(response: Mapping[str, Any]) -> None:
    """Raises IncompleteResponse for a success that no store sent: a proxy's, or one cut off in its headers."""
    if not response.get("ETag", "").strip('"'):
        raise IncompleteResponse("the response has no ETag")
