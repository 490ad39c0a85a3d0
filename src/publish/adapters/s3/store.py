"""The Store port over S3: a root is a prefix, a folder is what keys share up to a slash.

Keys go out as they are: nothing is normalised, percent-decoded or trimmed. One call is one
attempt; where it takes several requests, each may be sent again without harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from botocore.exceptions import ClientError

from publish.adapters.s3.client import IncompleteResponse, Line, connect
from publish.adapters.s3.errors import BATCH_DELETE_UNSUPPORTED, ErrorTranslator, missing, nameless, said
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
from publish.domain.ports import FilesPage, Namespace, Page, Removal, SavedFile
from publish.domain.root import S3Root

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3.type_defs import (
        ErrorTypeDef,
        ListObjectsV2RequestTypeDef,
        ObjectTypeDef,
        PutObjectRequestTypeDef,
    )

# AWS, "Creating object key names".
MAX_KEY = 1024
# AWS, DeleteObjects: at most 1,000 keys a request. One is kept for the object at the save's own path.
_PAGE = 999
# As far as an object is read whose size a HEAD does not give.
_MAX_RECORD = 64 * 2**10
_MAX_MEASURED = 64 * 2**20
_CHUNK_SIZE = 2**20
# What XML 1.0 has no characters for (section 2.2): such a key would spoil a whole batch.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_DOT_SEGMENT = re.compile(r"(?:\A|/)\.\.?(?:/|\Z)")


class _Listing(NamedTuple):
    """A page of a listing: whole keys, shared prefixes, and where the next page begins."""

    keys: list[str]
    objects: Sequence[ObjectTypeDef]
    prefixes: list[str]
    next_token: str | None


class S3Store:
    """The checkpoint root `s3://bucket/prefix`. May be used by several threads at once."""

    def __init__(self, root: S3Root, credentials: Credentials, line: Line) -> None:
        """No request is sent. Raises CredentialsError for a region or an endpoint that is none."""
        self._bucket = root.bucket
        self._base = root.prefix + "/"
        self._client = connect(credentials, line)
        self._translate = ErrorTranslator((credentials.secret_access_key, credentials.session_token or ""))
        self._batches = True
        # What a proxy is sent for an http:// store is a whole URL, out of which urllib3 takes dot segments.
        self._proxied_by_http = line.proxy is not None and (credentials.endpoint or "").startswith("http:")

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        """One page of at most 1,000 keys; the folder's own marker is no name in it."""
        folder = f"{self._base}{to_text(namespace.value)}/"
        listed = self._list(folder, token)
        start = len(folder)
        return Page([key[start:].encode() for key in listed.keys if key != folder], listed.next_token)

    def check_name_length(self, name: bytes) -> None:
        """The limit is on the key's bytes (AWS, "Creating object key names")."""
        key = f"{self._base}pub/{to_text(name)}"
        size = len(key.encode())
        if size > MAX_KEY:
            raise ConfigError(f"the publication's key would have {size} bytes, and S3 takes {MAX_KEY}: {key}")

    def create(self, namespace: Namespace, name: bytes, content: bytes = b"") -> None:
        """A put that asks for nothing to be there (RFC 9110 section 13.1.2); an entry's has no body."""
        self.put(namespace.value + b"/" + name, content or None, only_if_new=True)

    def read_record(self, namespace: Namespace, name: bytes) -> bytes | None:
        """A GET."""
        return self.read(namespace.value + b"/" + name, _MAX_RECORD)

    def sync_entries(self, namespace: Namespace, names: Sequence[bytes]) -> None:
        """Nothing: a put that was answered is durable."""

    def put(self, path: bytes, body: bytes | None, *, only_if_new: bool) -> None:
        """Puts one object. `only_if_new`: raises AlreadyExists or Conflict, as `create` does."""
        key = self._key(path)
        with self._asking("PUT", key, write=True, conditional=only_if_new):
            request: PutObjectRequestTypeDef = {"Bucket": self._bucket, "Key": key}
            if only_if_new:
                request["IfNoneMatch"] = "*"
            # An empty object has no Body at all: one of no bytes is sent with headers that stall some stores.
            if body is not None:
                request["Body"] = body
            answer = self._client.put_object(**request)
            if not answer.get("ETag", "").strip('"'):
                raise IncompleteResponse("the answer has no ETag")

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """One DeleteObjects, or single deletes where the store has none."""
        folder = f"{self._base}{to_text(namespace.value)}/"
        stuck = self._delete([folder + to_text(name) for name in names])
        return {key[len(folder) :].encode(): fault for key, fault in stuck.items()}

    def save_exists(self, path: bytes) -> bool:
        """Whether an object lies below the path, its own marker aside, or at it."""
        key = self._key(path)
        return any(one != key + "/" for one in self._keys(key + "/", limit=2)) or self._is_object(key)

    def list_directories(self, path: bytes, token: str | None) -> Page:
        """The common prefixes of a listing that stops at slashes."""
        base = f"{self._key(path)}/" if path else self._base
        listed = self._list(base, token, delimiter="/")
        return Page([prefix[len(base) : -1].encode() for prefix in listed.prefixes], listed.next_token)

    def list_files_in(self, path: bytes, token: str | None) -> Page:
        """The keys of a listing that stops at slashes; the folder's own marker is no name in it."""
        base = f"{self._key(path)}/" if path else self._base
        listed = self._list(base, token, delimiter="/")
        return Page([key[len(base) :].encode() for key in listed.keys if key != base], listed.next_token)

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        """One page of a listing; markers of folders are not files."""
        base = f"{self._key(path)}/"
        listed = self._list(base, token)
        files = [
            SavedFile(one["Key"][len(base) :].encode(), one["Size"], _version(one))
            for one in listed.objects
            if not one["Key"].endswith("/")
        ]
        return FilesPage(files, listed.next_token)

    def exists(self, path: bytes) -> bool:
        """Whether there is such an object."""
        return self.size(path) is not None

    def size(self, path: bytes) -> int | None:
        """What a HEAD says; a refusal of it carries no code, so a GET is asked for one."""
        key = self._key(path)
        with self._asking("HEAD", key, write=False):
            try:
                answer = self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if missing(error):
                    return None
                if not nameless(error):
                    raise
            else:
                if not answer.get("ETag"):
                    raise IncompleteResponse("the answer has no ETag")
                if "ContentLength" in answer:
                    return answer["ContentLength"]
        # HTTP lets a HEAD go without a length (RFC 9110 section 8.6), and its refusal has no code.
        content = self.read(path, _MAX_MEASURED)
        return None if content is None else len(content)

    def version(self, path: bytes) -> str | None:
        """The ETag that a listing has. Not a HEAD: some stores answer it for a folder, too."""
        key = self._key(path)
        return next((_version(one) for one in self._list(key, limit=1).objects if one["Key"] == key), None)

    def read(self, path: bytes, limit: int) -> bytes | None:
        """A GET, of whose body no more than `limit` bytes are read."""
        key = self._key(path)
        with self._asking("GET", key, write=False):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if missing(error):
                    return None
                raise
            with closing(answer["Body"]) as body:
                if not answer.get("ETag"):
                    raise IncompleteResponse("the answer has no ETag")
                return _content(body, limit)

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        """A GET of a range (RFC 9110 section 14.2)."""
        key = self._key(path)
        wanted = f"bytes={start}" if start < 0 else f"bytes={start}-{start + length - 1}"
        with self._asking("GET", key, write=False):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key, Range=wanted)
            except ClientError as error:
                if missing(error):
                    raise FormatError("not there") from error
                # RFC 9110 section 15.5.17: nothing of the object is in the range.
                if error.response["ResponseMetadata"]["HTTPStatusCode"] == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    return b""
                raise
            with closing(answer["Body"]) as body:
                if "ContentRange" not in answer and answer.get("ContentLength"):
                    raise IncompleteResponse("the answer has no Content-Range")
                return _content(body, length)

    def sync_save(self, path: bytes) -> None:
        """Nothing: a put that was answered is durable."""

    def real_path(self, path: bytes) -> bytes | None:
        """The path itself: there are no links."""
        return path

    def owner_is_trusted(self, path: bytes, reference: bytes) -> bool:  # noqa: ARG002  (objects belong to the bucket's users)
        """True: who may write to the bucket is for its policy to say."""
        return True

    def remove_tree(self, path: bytes, first: Sequence[bytes]) -> Removal:
        """One page of objects goes in a call, and with the last one the object at the path itself.

        Where an object cannot be removed, all pages go, since the next call would begin with it again.
        """
        key = self._key(path)
        folder = key + "/"
        listed = self._list(folder, limit=_PAGE)
        while not listed.keys and listed.next_token is not None:
            listed = self._list(folder, listed.next_token, limit=_PAGE)
        if not listed.keys and not self._is_object(key):
            return Removal(found=False, incomplete=False)
        for marker in (folder + to_text(name) for name in first):
            if marker in listed.keys or listed.next_token is not None:
                self._delete_one(marker)
        stuck = self._delete_page(listed, key)
        while stuck and listed.next_token is not None:
            listed = self._list(folder, listed.next_token, limit=_PAGE)
            stuck |= self._delete_page(listed, key)
        if stuck:
            raise next(iter(stuck.values()))
        return Removal(found=True, incomplete=listed.next_token is not None)

    def delete(self, path: bytes) -> None:
        """Deletes one object, where there."""
        self._delete_one(self._key(path))

    def _key(self, path: bytes) -> str:
        try:
            return self._base + path.decode()
        except UnicodeDecodeError as error:
            raise PermanentFault(f"a key on S3 is UTF-8 and this is not: {to_text(path)}") from error

    @contextmanager
    def _asking(self, method: str, key: str, *, write: bool, conditional: bool = False) -> Iterator[None]:
        """Turns whatever fails inside into the domain's errors."""
        try:
            yield
        except PublishError:
            raise
        except Exception as error:  # the table knows all that botocore raises, and hands on what it does not
            raise self._translate.fault(
                error, self._request(method, key), write=write, conditional=conditional
            ) from error

    def _request(self, method: str, key: str) -> str:
        return f"{method} s3://{self._bucket}/{key}"

    def _list(self, prefix: str, token: str | None = None, *, delimiter: str = "", limit: int = 0) -> _Listing:
        with self._asking("LIST", prefix, write=False):
            request: ListObjectsV2RequestTypeDef = {"Bucket": self._bucket, "Prefix": prefix}
            if token is not None:
                request["ContinuationToken"] = token
            if delimiter:
                request["Delimiter"] = delimiter
            if limit:
                request["MaxKeys"] = limit
            answer = self._client.list_objects_v2(**request)
            if "IsTruncated" not in answer:
                raise IncompleteResponse("the answer has no IsTruncated")
            objects = answer.get("Contents", ())
            keys = [one["Key"] for one in objects]
            prefixes = [one["Prefix"] for one in answer.get("CommonPrefixes", ())]
            next_token = answer.get("NextContinuationToken") if answer["IsTruncated"] else None
            if answer["IsTruncated"] and not next_token:
                raise IncompleteResponse("the answer has no NextContinuationToken")
            if answer.get("KeyCount") and not keys and not prefixes:
                raise IncompleteResponse("the answer counts keys and names none")
            if not keys and not prefixes and answer.get("Prefix", prefix) not in (prefix, ""):
                raise IncompleteResponse("the answer is about another prefix")
            for key in (*keys, *prefixes):
                if not key.startswith(prefix):
                    raise PermanentFault(f"{self._request('LIST', prefix)}: the answer is about something else: {key}")
        return _Listing(keys, objects, prefixes, next_token)

    def _is_object(self, key: str) -> bool:
        # Not a HEAD: some stores answer it for a folder, too.
        return next(self._keys(key, limit=1), None) == key

    def _keys(self, prefix: str, *, limit: int) -> Iterator[str]:
        """The keys of a listing, as far as they are asked for; `limit` bounds a page, which may well be empty."""
        token: str | None = None
        while True:
            listed = self._list(prefix, token, limit=limit)
            yield from listed.keys
            token = listed.next_token
            if token is None:
                return

    def _delete_page(self, listed: _Listing, save: str) -> dict[str, PermanentFault]:
        return self._delete(listed.keys if listed.next_token is not None else [*listed.keys, save])

    def _delete(self, keys: list[str]) -> dict[str, PermanentFault]:
        """Deletes at most 1,000 keys; returns those that the store will not delete, with why."""
        stuck: dict[str, PermanentFault] = {}
        singly = keys
        if self._batches:
            batch = [key for key in keys if not _NOT_IN_XML.search(key)]
            if len(batch) > 1 and (answered := self._delete_batch(batch)) is not None:
                stuck = answered
                singly = [key for key in keys if _NOT_IN_XML.search(key)]
        for key in singly:
            try:
                self._delete_one(key)
            except PermanentFault as fault:
                stuck[key] = fault
        return stuck

    def _delete_batch(self, keys: list[str]) -> dict[str, PermanentFault] | None:
        """As `_delete`, in one request; None where the store takes no such request."""
        with self._asking("DELETE", f"{keys[0]} and {len(keys) - 1} more", write=True):
            try:
                answer = self._client.delete_objects(
                    Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
                )
            except ClientError as error:
                code, _ = said(error)
                if code not in BATCH_DELETE_UNSUPPORTED:
                    raise
                # A key that XML cannot hold spoils only the batch that it is in.
                self._batches = code == "MalformedXML"
                return None
        return dict(self._stuck(answer.get("Errors", ())))

    def _stuck(self, errors: Iterable[ErrorTypeDef]) -> Iterator[tuple[str, PermanentFault]]:
        for error in errors:
            key, code = error.get("Key", ""), error.get("Code", "")
            if code == "NoSuchKey":
                continue
            request = self._request("DELETE", key)
            fault = self._translate.refusal(code, error.get("Message", ""), 0, request, write=True)
            if isinstance(fault, AlreadyExists | Conflict):
                fault = PermanentFault(str(fault))
            if not isinstance(fault, PermanentFault):
                # It may go well when all are sent again, which harms nothing twice.
                raise fault
            yield key, fault

    def _delete_one(self, key: str) -> None:
        if self._proxied_by_http and _DOT_SEGMENT.search(key):
            request = self._request("DELETE", key)
            raise PermanentFault(
                f"{request}: with a . or .. in it, it would become another key on its way through the proxy"
            )
        with self._asking("DELETE", key, write=True):
            try:
                self._client.delete_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if not missing(error):
                    raise


def _content(body: StreamingBody, limit: int) -> bytes:
    """The first `limit` bytes of an answer's body."""
    content = bytearray()
    # To the empty part at the end: only there does botocore compare the length with the header's.
    while part := body.read(min(_CHUNK_SIZE, limit - len(content))):
        content += part
    return bytes(content)


def _version(one: ObjectTypeDef) -> str:
    """The ETag; files that a job writes beside some stores have none (s3.5)."""
    return one.get("ETag") or f"{one['LastModified']}-{one['Size']}"
