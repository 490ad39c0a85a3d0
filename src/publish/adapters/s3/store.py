"""The Store port over S3: a root is a key prefix, a folder is a prefix that ends in a slash.

Keys are sent as they are: not normalised, percent-decoded or trimmed. One call is one attempt;
if it takes several requests, each can be repeated without harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from publish.adapters.s3.client import ConnectionSettings, connect
from publish.adapters.s3.errors import (
    BATCH_DELETE_UNSUPPORTED,
    ErrorTranslator,
    code_and_message,
    has_no_error_code,
    is_not_found,
)
from publish.adapters.s3.key_encoding import ENCODINGS, KeyEncoding, find_encodings
from publish.adapters.s3.responses import (
    IncompleteResponse,
    Listing,
    NotAnS3Response,
    parse_listing,
    parse_time,
    require_created,
    require_length,
    require_object,
    size_of,
)
from publish.adapters.s3.send_hook import SendHook
from publish.domain.credentials import Credentials
from publish.domain.entry import to_text
from publish.domain.errors import (
    AlreadyExists,
    ConfigError,
    Conflict,
    FormatError,
    PermanentFault,
    PublishError,
    StoreFault,
)
from publish.domain.ports import DatedName, DatedPage, FilesPage, Namespace, Page, Removal, SavedFile
from publish.domain.root import S3Root

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3.type_defs import (
        ErrorTypeDef,
        ListObjectsV2RequestTypeDef,
        PutObjectRequestTypeDef,
    )

# AWS, "Creating object key names".
MAX_KEY = 1024
# AWS, "DeleteObjects": at most 1,000 keys. One is reserved for the object at the path of the save itself.
_PAGE_SIZE = 999
# A record of `publish` is one line.
_MAX_RECORD = 64 * 2**10
# Read at most, to find the size of an object if the HEAD does not tell it.
_MAX_MEASURED = 64 * 2**20
_CHUNK_SIZE = 2**20
# Characters that XML 1.0 cannot represent (section 2.2): one such key invalidates a whole batch.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# What urllib3, proxies and stores on a directory remove from a URL, so that it names another key.
_LOST_SEGMENT = re.compile(r"(?:\A|/)\.\.?(?:/|\Z)|//|\A/")


class S3Store:
    """The checkpoint root `s3://bucket/prefix`. May be used by several threads at once."""

    def __init__(self, root: S3Root, credentials: Credentials, settings: ConnectionSettings) -> None:
        """Sends nothing. Raises CredentialsError for an invalid region or endpoint."""
        self._bucket = root.bucket
        self._base = root.prefix + "/"
        self._client = connect(credentials, settings)
        self._errors = ErrorTranslator((credentials.secret_access_key, credentials.session_token or ""))
        self._send_hook = SendHook(self._client)
        self._batches = True
        self._encodings: Sequence[KeyEncoding] = ENCODINGS

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        """One page of at most 1,000 keys, without the folder's own marker."""
        folder = f"{self._base}{to_text(namespace.value)}/"
        listed = self._list(folder, token)
        start = len(folder)
        return Page([key[start:].encode() for key in listed.keys if key != folder], listed.next_token)

    def list_dated(self, namespace: Namespace, token: str | None) -> DatedPage:
        """The listing's own times: no request more than `list_entries`."""
        folder = f"{self._base}{to_text(namespace.value)}/"
        listed = self._list(folder, token)
        names = [
            DatedName(item["Key"][len(folder) :].encode(), parse_time(item.get("LastModified", "")))
            for item in listed.objects
            if item["Key"] != folder
        ]
        return DatedPage(names, listed.next_token)

    def check_name_length(self, name: bytes) -> None:
        """The limit is on the bytes of the longest key that an entry needs (AWS, "Creating object key names")."""
        longest = max((Namespace.PUB.value, Namespace.PRUNE.value), key=len)
        key = f"{self._base}{to_text(longest)}/{to_text(name)}"
        size = len(key.encode())
        if size > MAX_KEY:
            raise ConfigError(f"key of the publication too long ({size} bytes, S3 allows {MAX_KEY}): {key}")

    def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
        """A put with `If-None-Match: *` (RFC 9110 section 13.1.2), without a body if there is no content."""
        self.put(namespace.value + b"/" + name, content or None, only_if_new=True)

    def read_record(self, namespace: Namespace, name: bytes) -> bytes | None:
        """A GET."""
        return self.read(namespace.value + b"/" + name, _MAX_RECORD)

    def sync_entries(self, namespace: Namespace, names: Sequence[bytes]) -> None:
        """Does nothing: a put that was answered is durable."""

    def put(
        self,
        path: bytes,
        body: bytes | None,
        *,
        only_if_new: bool,
        before_send: Callable[[], None] = lambda: None,
    ) -> None:
        """Puts one object. `only_if_new`: raises AlreadyExists or Conflict, as `create` does.

        `before_send` is called when the request is signed.
        """
        key = self._key(path)
        with (
            self._translate_errors("PUT", key, write=True, conditional=only_if_new),
            self._send_hook.set(before_send),
        ):
            request: PutObjectRequestTypeDef = {"Bucket": self._bucket, "Key": key}
            if only_if_new:
                request["IfNoneMatch"] = "*"
            # An empty object is put without Body: botocore sends `Expect` with an empty one (docs/s3-quirks.md).
            if body is not None:
                request["Body"] = body
            response = self._client.put_object(**request)
            require_created(response)

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """One DeleteObjects, or single deletes if the store does not support it."""
        folder = f"{self._base}{to_text(namespace.value)}/"
        failed = self._delete([folder + to_text(name) for name in names])
        return {key[len(folder) :].encode(): fault for key, fault in failed.items()}

    def save_exists(self, path: bytes) -> bool:
        """Whether there is an object at the path, or below it other than its own marker."""
        key = self._key(path)
        return any(found != key + "/" for found in self._keys(key + "/", limit=2)) or self._is_object(key)

    def list_directories(self, path: bytes, token: str | None) -> Page:
        """The common prefixes of a listing with a delimiter."""
        base = f"{self._key(path)}/" if path else self._base
        listed = self._list(base, token, delimiter="/")
        return Page([prefix[len(base) : -1].encode() for prefix in listed.prefixes], listed.next_token)

    def list_files_in(self, path: bytes, token: str | None) -> Page:
        """The keys of a listing that stops at slashes, without the folder's own marker."""
        base = f"{self._key(path)}/" if path else self._base
        listed = self._list(base, token, delimiter="/")
        return Page([key[len(base) :].encode() for key in listed.keys if key != base], listed.next_token)

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        """One page of a listing; markers of folders are not files."""
        base = f"{self._key(path)}/"
        listed = self._list(base, token)
        with self._translate_errors("LIST", base, write=False):
            files = [
                SavedFile(item["Key"][len(base) :].encode(), size_of(item), _version(item))
                for item in listed.objects
                if not item["Key"].endswith("/")
            ]
        return FilesPage(files, listed.next_token)

    def exists(self, path: bytes) -> bool:
        """Whether the object exists."""
        return self.size(path) is not None

    def size(self, path: bytes) -> int | None:
        """The length in the response to a HEAD; if that is an error, a GET shows its code."""
        key = self._key(path)
        with self._translate_errors("HEAD", key, write=False):
            try:
                response = self._client.head_object(Bucket=self._bucket, Key=key)
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
        content = self.read(path, _MAX_MEASURED)
        return None if content is None else len(content)

    def version(self, path: bytes) -> str | None:
        """The ETag in a listing. Not a HEAD: stores on a directory answer it for a folder, too."""
        key = self._key(path)
        return next((_version(item) for item in self._list(key, limit=1).objects if item["Key"] == key), None)

    def read(self, path: bytes, limit: int) -> bytes | None:
        """A GET, of whose body no more than `limit` bytes are read."""
        return self._get(path, limit)

    def hold_connection(self, path: bytes, until: Callable[[], None]) -> None:
        """A GET, of whose body nothing is read before `until` returns: the connection is busy until then."""
        self._get(path, _MAX_RECORD, before_body=until)

    def _get(self, path: bytes, limit: int, before_body: Callable[[], None] = lambda: None) -> bytes | None:
        key = self._key(path)
        with self._translate_errors("GET", key, write=False):
            try:
                response = self._client.get_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if is_not_found(error):
                    return None
                raise
            with closing(response["Body"]) as body:
                require_object(response)
                require_length(response)
                before_body()
                return _content(body, limit)

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        """A GET of a range (RFC 9110 section 14.2)."""
        key = self._key(path)
        wanted = f"bytes={start}" if start < 0 else f"bytes={start}-{start + length - 1}"
        with self._translate_errors("GET", key, write=False):
            try:
                response = self._client.get_object(Bucket=self._bucket, Key=key, Range=wanted)
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

    def sync_save(self, path: bytes) -> None:
        """Does nothing: a put that was answered is durable."""

    def real_path(self, path: bytes) -> bytes | None:
        """The path itself: S3 has no links."""
        return path

    def owner_is_trusted(self, path: bytes, reference: bytes) -> bool:  # noqa: ARG002  (objects belong to the bucket)
        """True: the bucket's policy says who may write to it."""
        return True

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        """Removes one page of objects, and with the last page the object at the path itself.

        It is complete when a listing is empty: a store may answer a deletion that it did not do. If an object cannot
        be removed, removes all pages, because the next call would list it again.
        """
        key = self._key(path)
        folder = key + "/"
        listed = self._list(folder, limit=_PAGE_SIZE)
        while not listed.keys and listed.next_token is not None:
            listed = self._list(folder, listed.next_token, limit=_PAGE_SIZE)
        if not listed.keys and not self._is_object(key):
            return Removal(found=False, incomplete=False)
        for marker in (folder + to_text(name) for name in first):
            if marker in listed.keys or listed.next_token is not None:
                self._delete_one(marker)
        failed = self._delete_page(listed, key)
        while failed and listed.next_token is not None:
            listed = self._list(folder, listed.next_token, limit=_PAGE_SIZE)
            failed |= self._delete_page(listed, key)
        if failed:
            raise next(iter(failed.values()))
        rest = self._list(folder, limit=1)
        for kept in set(rest.keys).intersection(listed.keys):
            raise PermanentFault(f"{self._request('DELETE', kept)}: still listed after the store deleted it")
        return Removal(found=True, incomplete=bool(rest.keys) or rest.next_token is not None)

    def delete(self, path: bytes) -> None:
        """Deletes one object if it exists."""
        self._delete_one(self._key(path))

    def _key(self, path: bytes) -> str:
        try:
            return self._base + path.decode()
        except UnicodeDecodeError as error:
            raise PermanentFault(f"not UTF-8, as a key on S3 must be: {to_text(path)}") from error

    @contextmanager
    def _translate_errors(self, method: str, key: str, *, write: bool, conditional: bool = False) -> Iterator[None]:
        """Raises the domain's errors in place of botocore's."""
        try:
            yield
        except PublishError:
            raise
        except Exception as error:  # unknown ones are raised as they are
            raise self._errors.translate(
                error, self._request(method, key), write=write, conditional=conditional
            ) from error

    def _request(self, method: str, key: str) -> str:
        return f"{method} s3://{self._bucket}/{key}"

    def _list(self, prefix: str, token: str | None = None, *, delimiter: str = "", limit: int = 0) -> Listing:
        """One page. Its keys are decoded, which may take a few requests more, once for a store."""
        with self._translate_errors("LIST", prefix, write=False):
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

    def _list_as_written(self, prefix: str, token: str | None = None, *, delimiter: str = "", limit: int) -> Listing:
        # botocore decodes the keys unless it is told the encoding, and always as AWS encodes them.
        request: ListObjectsV2RequestTypeDef = {"Bucket": self._bucket, "Prefix": prefix, "EncodingType": "url"}
        if token is not None:
            request["ContinuationToken"] = token
        if delimiter:
            request["Delimiter"] = delimiter
        if limit:
            request["MaxKeys"] = limit
        return parse_listing(self._client.list_objects_v2(**request), prefix, token)

    def _is_object(self, key: str) -> bool:
        # Not a HEAD: stores on a directory answer it for a folder, too (docs/s3-quirks.md).
        return next(self._keys(key, limit=1), None) == key

    def _keys(self, prefix: str, *, limit: int) -> Iterator[str]:
        """The keys of a listing, fetched page by page. `limit` is the size of a page, which may be empty."""
        token: str | None = None
        while True:
            listed = self._list(prefix, token, limit=limit)
            yield from listed.keys
            token = listed.next_token
            if token is None:
                return

    def _delete_page(self, listed: Listing, save: str) -> dict[str, PermanentFault]:
        return self._delete(listed.keys if listed.next_token is not None else [*listed.keys, save])

    def _delete(self, keys: list[str]) -> dict[str, PermanentFault]:
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
                self._delete_one(key)
            except PermanentFault as fault:
                failed[key] = fault
        return failed

    def _delete_batch(self, keys: list[str]) -> dict[str, PermanentFault] | None:
        """As `_delete`, in one request. None if the store does not support it."""
        with self._translate_errors("DELETE", f"{keys[0]} and {len(keys) - 1} more", write=True):
            try:
                response = self._client.delete_objects(
                    Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
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
            request = self._request("DELETE", key)
            fault = self._errors.translate_code(code, error.get("Message", ""), 0, request, write=True)
            if isinstance(fault, AlreadyExists | Conflict):
                fault = PermanentFault(str(fault))
            if not isinstance(fault, PermanentFault):
                # The whole batch may succeed when repeated, which is harmless.
                raise fault
            yield key, fault

    def _delete_one(self, key: str) -> None:
        if _LOST_SEGMENT.search(key):
            request = self._request("DELETE", key)
            raise PermanentFault(f"{request}: refusing to delete a key with an empty, . or .. segment by its URL")
        with self._translate_errors("DELETE", key, write=True):
            try:
                self._client.delete_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if not is_not_found(error):
                    raise


def _content(body: StreamingBody, limit: int) -> bytes:
    """The first `limit` bytes of a response's body."""
    # Not a bytearray: `getvalue` does not copy.
    content = BytesIO()
    # Up to the empty chunk at the end, because botocore checks the length only there.
    while chunk := body.read(min(_CHUNK_SIZE, limit - content.tell())):
        content.write(chunk)
    return content.getvalue()


def _version(item: Mapping[str, str]) -> str:
    """The ETag; files that a job writes beside versitygw have none (s3.5)."""
    return item.get("ETag") or f"{item.get('LastModified')}-{item.get('Size')}"
