"""Checks every response of a store before it is believed: botocore accepts partial ones, and web pages.

docs/s3-quirks.md says which store needs which check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from publish.adapters.s3.documents import InvalidDocument, Kind, TruncatedDocument, parse_document
from publish.adapters.s3.key_encoding import is_our_prefix

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

# Bytes of a body. A page of 1,000 keys, each of 1,024 bytes that are escaped, has less than 8 MiB.
MAX_LISTING = 16 * 2**20
MAX_BODY = 64 * 2**10
_CHUNK_SIZE = 64 * 2**10
# int() refuses more than 4,300.
_MAX_DIGITS = 20

_OTHER_SUCCESSES = range(201, 300)
_ERRORS = range(300, 1000)
_DOCUMENTS = {
    "ListObjectsV2": Kind(
        roots=("ListBucketResult", "Error"),
        texts=("IsTruncated", "KeyCount", "NextContinuationToken", "Prefix", "EncodingType"),
        items={"Contents": ("Key", "Size", "ETag", "LastModified"), "CommonPrefixes": ("Prefix",)},
    ),
    "DeleteObjects": Kind(roots=("DeleteResult", "Error"), texts=(), items={"Error": ("Key", "Code", "Message")}),
}


class NotAnS3Response(Exception):
    """Something other than an S3 store responded, such as a web server."""


class IncompleteResponse(Exception):
    """Part of the response is missing."""


class RepeatedToken(Exception):
    """The listing would never end."""


class Listing(NamedTuple):
    """A page of a listing: keys and common prefixes, the fields of the objects as text, the next token.

    `encoded`: the store says that it encoded keys and prefixes.
    """

    keys: list[str]
    objects: Sequence[Mapping[str, str]]
    prefixes: list[str]
    next_token: str | None
    encoded: bool

    def decode(self, decode: Callable[[str], str]) -> Listing:
        """The page with its keys decoded."""
        return self._replace(
            keys=[decode(key) for key in self.keys],
            objects=[{**item, "Key": decode(item["Key"])} for item in self.objects],
            prefixes=[decode(prefix) for prefix in self.prefixes],
            encoded=False,
        )


def read_body(raw: Any, status: int, operation: str) -> bytes:  # noqa: ANN401  (urllib3's response, untyped in botocore)
    """The body of a response other than an object's, as far as S3 may send it. Closes the connection of a longer one.

    The body of an error that is too long is dropped: its status says enough. Raises NotAnS3Response for others.
    """
    limit = MAX_LISTING if operation in _DOCUMENTS and status == HTTPStatus.OK else MAX_BODY
    body = BytesIO()
    for chunk in raw.stream(_CHUNK_SIZE):
        body.write(chunk)
        if body.tell() > limit:
            raw.close()
            if status in _ERRORS:
                return b""
            raise NotAnS3Response(f"the response is larger than {limit // 1024} KiB")
    return body.getvalue()


def validate_response(
    operation_model: Any,  # noqa: ANN401  (botocore's model)
    response_dict: dict[str, Any],
    customized_response_dict: dict[str, Any],
    **_: object,
) -> None:
    """The hook for botocore's `before-parse`. Raises NotAnS3Response or IncompleteResponse."""
    headers, body, status = response_dict["headers"], response_dict["body"], response_dict["status_code"]
    operation = operation_model.name
    if status == HTTPStatus.OK and _is_web_page(headers, body, operation):
        if not isinstance(body, bytes):
            body.close()
        raise NotAnS3Response("the response is a web page")
    if not isinstance(body, bytes) or operation_model.http["method"] == "HEAD":
        return
    if headers.get("content-encoding", "identity").lower() not in {"identity", "aws-chunked", ""}:
        raise NotAnS3Response(f"the response is compressed: {headers['content-encoding']}")
    length = headers.get("content-length", "")
    # A connection that breaks in the middle of the headers looks like the end of the headers.
    if status not in _ERRORS and length.isdigit() and len(body) < int(length):
        raise IncompleteResponse(f"received {len(body)} of {length} bytes")
    if status in _OTHER_SUCCESSES and operation in {"ListObjectsV2", "PutObject"}:
        raise IncompleteResponse(f"unexpected HTTP status {status}")
    if status == HTTPStatus.OK and operation in _DOCUMENTS:
        _replace_document(operation, response_dict, customized_response_dict)


def _replace_document(operation: str, response_dict: dict[str, Any], parsed: dict[str, Any]) -> None:
    """Parses the document into what botocore would make of it, and leaves it an empty one."""
    try:
        document = parse_document(response_dict["body"], _DOCUMENTS[operation])
    except TruncatedDocument as error:
        raise IncompleteResponse(str(error)) from None
    except InvalidDocument as error:
        raise NotAnS3Response(str(error)) from None
    if document.root == "Error":
        if len(response_dict["body"]) > MAX_BODY:
            raise NotAnS3Response(f"the error is larger than {MAX_BODY // 1024} KiB")
        return
    response_dict["body"] = f"<{document.root}/>".encode()
    if operation == "DeleteObjects":
        parsed["Errors"] = document.items["Error"]
        return
    parsed.update(document.texts, **document.items)
    parsed["IsTruncated"] = _parse_boolean(document.texts.get("IsTruncated", ""))


def _parse_boolean(text: str) -> bool:
    # botocore reads any other word as false, which would end a listing early.
    if text.strip() not in {"true", "false"}:
        raise NotAnS3Response("the response has no IsTruncated")
    return text.strip() == "true"


def _is_web_page(headers: Mapping[str, str], body: object, operation: str) -> bool:
    # An object may itself be a web page, and moto labels the empty response to a put as one: both have an ETag.
    if "etag" in headers and (operation != "PutObject" or not body):
        return False
    return headers.get("content-type", "").lower().startswith("text/html")


def parse_listing(response: ListObjectsV2OutputTypeDef, prefix: str, token: str | None = None) -> Listing:
    """The page that a response holds, with its keys as the store wrote them.

    `token` is that of the request. Raises NotAnS3Response if the response contradicts itself or the request, and
    RepeatedToken.
    """
    objects: Any = response.get("Contents", ())
    keys = [_require(item, "Key") for item in objects]
    prefixes = [_require(item, "Prefix") for item in response.get("CommonPrefixes", ())]
    next_token = response.get("NextContinuationToken") if response["IsTruncated"] else None
    if response["IsTruncated"] and not next_token:
        raise NotAnS3Response("the response has no NextContinuationToken")
    if next_token is not None and next_token == token:
        raise RepeatedToken(f"the store returned the same continuation token twice in a row: {token}")
    if not keys and not prefixes:
        if str(response.get("KeyCount", 0)).strip() not in {"0", ""}:
            raise NotAnS3Response("the response has KeyCount but no keys")
        if not is_our_prefix(response.get("Prefix", ""), prefix):
            raise NotAnS3Response("the response is for a different prefix")
    return Listing(keys, objects, prefixes, next_token, response.get("EncodingType") == "url")


def size_of(item: Mapping[str, str]) -> int:
    """The size of a listed object in bytes. Raises NotAnS3Response."""
    text = _require(item, "Size").strip()
    if not text.isascii() or not text.isdigit() or len(text) > _MAX_DIGITS:
        raise NotAnS3Response("the response lists an object with an invalid size")
    return int(text)


def _require(item: Mapping[str, Any], field: str) -> str:
    if field not in item:
        raise NotAnS3Response(f"the response lists something without {field}")
    return str(item[field])


def parse_time(text: str) -> float:
    """The seconds since the epoch of Unix that a LastModified says (ISO 8601; AWS, "ListObjectsV2").

    Raises NotAnS3Response for any other text.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise NotAnS3Response(f"invalid LastModified: {text[:64]}") from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def require_created(response: Mapping[str, Any]) -> None:
    """Raises IncompleteResponse for a put without an ETag: a proxy responded, or the headers are cut off."""
    if not response.get("ETag", "").strip('"'):
        raise IncompleteResponse("the response has no ETag")


def require_object(response: Mapping[str, Any]) -> None:
    """As `require_created`, of a get or a head.

    Files that others write beside versitygw have no ETag; only a Last-Modified tells them from an empty 200.
    """
    if not response.get("ETag") and "LastModified" not in response:
        raise IncompleteResponse("the response has neither ETag nor Last-Modified")


def require_length(response: Mapping[str, Any]) -> None:
    """Raises IncompleteResponse for an object whose end looks like a broken connection."""
    headers = response["ResponseMetadata"]["HTTPHeaders"]
    if "content-length" not in headers and "transfer-encoding" not in headers:
        raise IncompleteResponse("the response has no Content-Length")
