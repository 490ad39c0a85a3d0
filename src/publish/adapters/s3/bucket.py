"""The requests to one bucket: each is checked, and its errors are the domain's.

Keys are sent as they are: not normalised, percent-decoded or trimmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from publish.adapters.s3.client import ConnectionSettings, connect
from publish.adapters.s3.errors import ErrorTranslator, has_no_error_code, is_not_found
from publish.adapters.s3.key_encoding import ENCODINGS, KeyEncoding, find_encodings
from publish.adapters.s3.responses import (
    IncompleteResponse,
    Listing,
    NotAnS3Response,
    parse_listing,
    require_created,
    require_length,
    require_object,
)
from publish.adapters.s3.send_hook import SendHook
from publish.domain.credentials import Credentials
from publish.domain.errors import FormatError, PublishError

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3.type_defs import ListObjectsV2RequestTypeDef, PutObjectRequestTypeDef

# Read at most, to find the size of an object if the HEAD does not tell it.
_MAX_MEASURED = 64 * 2**20
_CHUNK_SIZE = 2**20


class Bucket:
    """May be used by several threads at once. One call is one attempt."""

    def __init__(self, name: str, credentials: Credentials, settings: ConnectionSettings) -> None:
        """Sends nothing. Raises CredentialsError for an invalid region or endpoint."""
        self.name = name
        self.client = connect(credentials, settings)
        self.errors = ErrorTranslator((credentials.secret_access_key, credentials.session_token or ""))
        self._send_hook = SendHook(self.client)
        self._encodings: Sequence[KeyEncoding] = ENCODINGS

    def list(self, prefix: str, token: str | None = None, *, delimiter: str = "", limit: int = 0) -> Listing:
        """One page. Its keys are decoded, which may take a few requests more, once for a store."""
        with self.translate_errors("LIST", prefix, write=False):
            listed = self._list_as_written(prefix, token, delimiter=delimiter, limit=limit)
            written = [*listed.keys, *listed.prefixes]
            encodings = find_encodings(
                written,
                prefix,
                declared=listed.encoded,
                ask=lambda key: self._list_as_written(key, limit=1).keys,
                known=self._encodings,
            )
            if not encodings:
                outside = next(key for key in written if not key.startswith(prefix))
                raise NotAnS3Response(f"the response lists a key outside the prefix: {outside}")
            self._encodings = encodings
            return listed.decode(encodings[0].decode)

    def keys(self, prefix: str, *, limit: int) -> Iterator[str]:
        """The keys of a listing, fetched page by page. `limit` is the size of a page, which may be empty."""
        token: str | None = None
        while True:
            listed = self.list(prefix, token, limit=limit)
            yield from listed.keys
            token = listed.next_token
            if token is None:
                return

    def is_object(self, key: str) -> bool:
        """Whether there is an object of this key."""
        # Not a HEAD: stores on a directory answer it for a folder, too (docs/s3-quirks.md).
        return next(self.keys(key, limit=1), None) == key

    def size(self, key: str) -> int | None:
        """The length in the response to a HEAD; if that is an error, a GET shows its code."""
        with self.translate_errors("HEAD", key, write=False):
            try:
                response = self.client.head_object(Bucket=self.name, Key=key)
            except ClientError as error:
                if is_not_found(error):
                    return None
                if not has_no_error_code(error):
                    raise
            else:
                require_object(response)
                if "ContentLength" in response:
                    return response["ContentLength"]
        # A HEAD's response may lack the length (RFC 9110 section 8.6), and its errors have no code.
        content = self.get(key, _MAX_MEASURED)
        return None if content is None else len(content)

    def get(self, key: str, limit: int, before_body: Callable[[], None] = lambda: None) -> bytes | None:
        """A GET, of whose body no more than `limit` bytes are read, once `before_body` has returned."""
        with self.translate_errors("GET", key, write=False):
            try:
                response = self.client.get_object(Bucket=self.name, Key=key)
            except ClientError as error:
                if is_not_found(error):
                    return None
                raise
            with closing(response["Body"]) as body:
                require_object(response)
                require_length(response)
                before_body()
                return _content(body, limit)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """A GET of a range (RFC 9110 section 14.2)."""
        wanted = f"bytes={start}" if start < 0 else f"bytes={start}-{start + length - 1}"
        with self.translate_errors("GET", key, write=False):
            try:
                response = self.client.get_object(Bucket=self.name, Key=key, Range=wanted)
            except ClientError as error:
                if is_not_found(error):
                    raise FormatError("not there") from error
                # RFC 9110 section 15.5.17: the range lies outside the object.
                if error.response["ResponseMetadata"]["HTTPStatusCode"] == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    return b""
                raise
            with closing(response["Body"]) as body:
                if "ContentRange" not in response and response.get("ContentLength"):
                    raise IncompleteResponse("the response has no Content-Range")
                return _content(body, length)

    def put(
        self,
        key: str,
        body: bytes | None,
        *,
        only_if_new: bool,
        before_send: Callable[[], None],
    ) -> None:
        """Puts one object. `only_if_new`: raises AlreadyExists or Conflict, as `create` does.

        `before_send` is called when the request is signed.
        """
        with (
            self.translate_errors("PUT", key, write=True, conditional=only_if_new),
            self._send_hook.set(before_send),
        ):
            request: PutObjectRequestTypeDef = {"Bucket": self.name, "Key": key}
            if only_if_new:
                request["IfNoneMatch"] = "*"
            # An empty object is put without Body: botocore sends `Expect` with an empty one (docs/s3-quirks.md).
            if body is not None:
                request["Body"] = body
            response = self.client.put_object(**request)
            require_created(response)

    @contextmanager
    def translate_errors(self, method: str, key: str, *, write: bool, conditional: bool = False) -> Iterator[None]:
        """Raises the domain's errors in place of botocore's."""
        try:
            yield
        except PublishError:
            raise
        except Exception as error:  # unknown ones are raised as they are
            raise self.errors.translate(
                error, self.describe(method, key), write=write, conditional=conditional
            ) from error

    def describe(self, method: str, key: str) -> str:
        """A request, for people."""
        return f"{method} s3://{self.name}/{key}"

    def _list_as_written(self, prefix: str, token: str | None = None, *, delimiter: str = "", limit: int) -> Listing:
        # botocore decodes the keys unless it is told the encoding, and always as AWS encodes them.
        request: ListObjectsV2RequestTypeDef = {"Bucket": self.name, "Prefix": prefix, "EncodingType": "url"}
        if token is not None:
            request["ContinuationToken"] = token
        if delimiter:
            request["Delimiter"] = delimiter
        if limit:
            request["MaxKeys"] = limit
        return parse_listing(self.client.list_objects_v2(**request), prefix, token)


def _content(body: StreamingBody, limit: int) -> bytes:
    """The first `limit` bytes of a response's body."""
    # Not a bytearray: `getvalue` does not copy.
    content = BytesIO()
    # Up to the empty chunk at the end, because botocore checks the length only there.
    while chunk := body.read(min(_CHUNK_SIZE, limit - content.tell())):
        content.write(chunk)
    return content.getvalue()
