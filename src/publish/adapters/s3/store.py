"""The Store port over S3: a root is a key prefix, a folder is a prefix that ends in a slash.

One call is one attempt; if it takes several requests, each can be repeated without harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from publish.adapters.s3.bucket import Bucket
from publish.adapters.s3.client import ConnectionSettings
from publish.adapters.s3.deletion import MAX_BATCH, Deleter
from publish.adapters.s3.responses import Listing, parse_time, size_of
from publish.domain.credentials import Credentials
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError, NotApplied, PermanentFault, StoreFault
from publish.domain.ports import DatedName, DatedPage, FilesPage, Namespace, Page, Removal, SavedFile
from publish.domain.root import S3Root

# AWS, "Creating object key names".
MAX_KEY = 1024
# One deletion is reserved for the object at the path of the save itself.
_PAGE_SIZE = MAX_BATCH - 1
# A record of `publish` is one line.
_MAX_RECORD = 64 * 2**10


class S3Store:
    """The checkpoint root `s3://bucket/prefix`. May be used by several threads at once."""

    def __init__(self, root: S3Root, credentials: Credentials, settings: ConnectionSettings) -> None:
        """Sends nothing. Raises CredentialsError for an invalid region or endpoint."""
        self._bucket = Bucket(root.bucket, credentials, settings)
        self._deleter = Deleter(self._bucket)
        self._base = root.prefix + "/"

    def list_entries(self, namespace: Namespace, token: str | None) -> Page:
        """One page of at most 1,000 keys, without the folder's own marker."""
        folder = f"{self._base}{to_text(namespace.value)}/"
        listed = self._bucket.list(folder, token)
        start = len(folder)
        return Page([key[start:].encode() for key in listed.keys if key != folder], listed.next_token)

    def list_dated(self, namespace: Namespace, token: str | None) -> DatedPage:
        """The listing's own times: no request more than `list_entries`."""
        folder = f"{self._base}{to_text(namespace.value)}/"
        listed = self._bucket.list(folder, token)
        with self._bucket.translate_errors("LIST", folder, write=False):
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
            raise ConfigError(
                "the save's path is too long: the key of its removal record would have "
                f"{size} bytes and the limit is {MAX_KEY}"
            )

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
        self._bucket.put(self._key(path), body, only_if_new=only_if_new, before_send=before_send)

    def remove_entries(self, namespace: Namespace, names: Sequence[bytes]) -> Mapping[bytes, StoreFault]:
        """One DeleteObjects, or single deletes if the store does not support it."""
        folder = f"{self._base}{to_text(namespace.value)}/"
        failed = self._deleter.delete([folder + to_text(name) for name in names])
        return {key[len(folder) :].encode(): fault for key, fault in failed.items()}

    def save_exists(self, path: bytes) -> bool:
        """Whether there is an object at the path, or below it other than its own marker."""
        key = self._key(path)
        return any(found != key + "/" for found in self._bucket.keys(key + "/", limit=2)) or self._bucket.is_object(key)

    def list_directories(self, path: bytes, token: str | None) -> Page:
        """The common prefixes of a listing with a delimiter."""
        base = f"{self._key(path)}/" if path else self._base
        listed = self._bucket.list(base, token, delimiter="/")
        return Page([prefix[len(base) : -1].encode() for prefix in listed.prefixes], listed.next_token)

    def list_files_in(self, path: bytes, token: str | None) -> Page:
        """The keys of a listing that stops at slashes, without the folder's own marker."""
        base = f"{self._key(path)}/" if path else self._base
        listed = self._bucket.list(base, token, delimiter="/")
        return Page([key[len(base) :].encode() for key in listed.keys if key != base], listed.next_token)

    def list_files(self, path: bytes, token: str | None) -> FilesPage:
        """One page of a listing; markers of folders are not files."""
        base = f"{self._key(path)}/"
        listed = self._bucket.list(base, token)
        with self._bucket.translate_errors("LIST", base, write=False):
            files = [
                SavedFile(item["Key"][len(base) :].encode(), size_of(item), _version(item))
                for item in listed.objects
                if not item["Key"].endswith("/")
            ]
        return FilesPage(files, listed.next_token)

    def exists(self, path: bytes) -> bool:
        """Whether there is an object at the path, or below it."""
        key = self._key(path)
        return self._bucket.size(key) is not None or any(self._bucket.keys(key + "/", limit=1))

    def size(self, path: bytes) -> int | None:
        """The length in the response to a HEAD; if that is an error, a GET shows its code."""
        return self._bucket.size(self._key(path))

    def version(self, path: bytes) -> str | None:
        """The ETag in a listing. Not a HEAD: stores on a directory answer it for a folder, too."""
        key = self._key(path)
        return next((_version(item) for item in self._bucket.list(key, limit=1).objects if item["Key"] == key), None)

    def read(self, path: bytes, limit: int) -> bytes | None:
        """A GET, of whose body no more than `limit` bytes are read."""
        return self._bucket.get(self._key(path), limit)

    def hold_connection(self, path: bytes, until: Callable[[], None]) -> None:
        """A GET, of whose body nothing is read before `until` returns: the connection is busy until then."""
        self._bucket.get(self._key(path), _MAX_RECORD, before_body=until)

    def read_range(self, path: bytes, start: int, length: int) -> bytes:
        """A GET of a range (RFC 9110 section 14.2)."""
        return self._bucket.get_range(self._key(path), start, length)

    def sync_save(self, path: bytes) -> None:
        """Does nothing: a put that was answered is durable."""

    def real_path(self, path: bytes) -> bytes | None:
        """The path itself: S3 has no links."""
        return path

    def is_link(self, path: bytes) -> bool:  # noqa: ARG002  (as the port has it)
        """False: S3 has no links."""
        return False

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
        listed = self._bucket.list(folder, limit=_PAGE_SIZE)
        while not listed.keys and listed.next_token is not None:
            listed = self._bucket.list(folder, listed.next_token, limit=_PAGE_SIZE)
        if not listed.keys and not self._bucket.is_object(key):
            return Removal(found=False, incomplete=False)
        for marker in (folder + to_text(name) for name in first):
            if marker in listed.keys or listed.next_token is not None:
                self._deleter.delete_one(marker)
        failed = self._delete_page(listed, key)
        while failed and listed.next_token is not None:
            listed = self._bucket.list(folder, listed.next_token, limit=_PAGE_SIZE)
            failed |= self._delete_page(listed, key)
        if failed:
            raise next(iter(failed.values()))
        try:
            rest = self._bucket.list(folder, limit=1)
        except NotApplied:
            # The next call looks again; tried again from the start, this one would find nothing.
            return Removal(found=True, incomplete=True)
        for kept in set(rest.keys).intersection(listed.keys):
            raise PermanentFault(f"{self._bucket.describe('DELETE', kept)}: still listed after the store deleted it")
        return Removal(found=True, incomplete=bool(rest.keys) or rest.next_token is not None)

    def delete(self, path: bytes) -> None:
        """Deletes one object if it exists."""
        self._deleter.delete_one(self._key(path))

    def _key(self, path: bytes) -> str:
        try:
            return self._base + path.decode()
        except UnicodeDecodeError as error:
            raise PermanentFault(f"not UTF-8, as a key on S3 must be: {to_text(path)}") from error

    def _delete_page(self, listed: Listing, save: str) -> dict[str, PermanentFault]:
        return self._deleter.delete(listed.keys if listed.next_token is not None else [*listed.keys, save])


def _version(item: Mapping[str, str]) -> str:
    """The ETag; files that a job writes beside versitygw have none (s3.5)."""
    return item.get("ETag") or f"{item.get('LastModified')}-{item.get('Size')}"
