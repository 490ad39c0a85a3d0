"""The folders that are publish's own: `pub/` and what is in `.publish/`. No link leads into them.

Only `pub` may be a link, for reading, if the link belongs to the user running or to root: a link of
another user could lead to another root's log. Nothing is ever written or removed through it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from publish.adapters.posix.fds import DIRECTORY, DIRECTORY_ITSELF, Fsync, closing
from publish.adapters.posix.root import RootDirectory
from publish.domain.entry import to_text
from publish.domain.errors import ConfigError, FormatError
from publish.domain.ports import Namespace

_PUB = Namespace.PUB.value


class Chain:
    """A namespace and the folders above it, opened; syncing goes from the innermost up to the root."""

    def __init__(self, root: RootDirectory, folders: list[int]) -> None:
        """`folders`: descriptors, the outermost first and the namespace's last."""
        self._root = root
        self._folders = folders

    @property
    def innermost(self) -> int:
        """The namespace's descriptor."""
        return self._folders[-1]

    def sync(self, fsync: Fsync) -> None:
        """Makes the namespace's names durable, and the namespace's own in the folders above it."""
        for folder in reversed(self._folders):
            fsync(folder)
        fsync.folder(b".", self._root.fd)


@contextmanager
def open_for_reading(root: RootDirectory, namespace: bytes) -> Iterator[int | None]:
    """The namespace's descriptor; None: it is not there, which the server was asked for (nfs.1)."""
    folder = _open(root, namespace)
    if folder is None:
        root.reopen()
        folder = _open(root, namespace)
    if folder is None:
        yield None
        return
    with closing(folder):
        yield folder


def _open(root: RootDirectory, namespace: bytes) -> int | None:
    try:
        if namespace == _PUB:
            return _open_pub(root)
        with _chain(root, namespace, make=False) as chain:
            return os.dup(chain.innermost)
    except FileNotFoundError:
        return None


@contextmanager
def open_existing(root: RootDirectory, namespace: bytes) -> Iterator[Chain | None]:
    """The namespace for a removal, with the folders above it; None: it is not there.

    Raises ConfigError for a link in the place of one of them, or of `pub`.
    """
    _refuse_linked_pub(root, namespace)
    with ExitStack() as stack:
        try:
            chain = stack.enter_context(_chain(root, namespace, make=False))
        except FileNotFoundError:
            root.reopen()
            chain = None
        yield chain


@contextmanager
def open_or_create(root: RootDirectory, namespace: bytes) -> Iterator[Chain]:
    """The namespace for a creation, with the folders above it, made where they are missing.

    Raises ConfigError for a link in the place of one of them, or of `pub`.
    """
    _refuse_linked_pub(root, namespace)
    with ExitStack() as stack:
        try:
            chain = stack.enter_context(_chain(root, namespace, make=True))
        except FileNotFoundError:
            root.reopen()
            raise
        yield chain


def _refuse_linked_pub(root: RootDirectory, namespace: bytes) -> None:
    """Raises ConfigError where `pub` is a link: what is removed through it would be another root's.

    A removal's record belongs to an entry in `pub/`, so it is not written beside a linked one either.
    """
    if namespace not in (_PUB, Namespace.PRUNE.value):
        return
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.lstat(_PUB, dir_fd=root.fd).st_mode):
            raise _link(root, _PUB)


@contextmanager
def _chain(root: RootDirectory, namespace: bytes, *, make: bool) -> Iterator[Chain]:
    """Raises FileNotFoundError where a folder is missing and is not made."""
    with ExitStack() as stack:
        above, folders, path = root.fd, [], b""
        for component in namespace.split(b"/"):
            path = os.path.join(path, component)
            if make:
                with suppress(FileExistsError):
                    os.mkdir(component, dir_fd=above)
            above = stack.enter_context(closing(_open_itself(root, component, above, path)))
            folders.append(above)
        yield Chain(root, folders)


def _open_itself(root: RootDirectory, component: bytes, above: int, path: bytes) -> int:
    try:
        return os.open(component, DIRECTORY_ITSELF, dir_fd=above)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
    if stat.S_ISLNK(os.lstat(component, dir_fd=above).st_mode):
        raise _link(root, path)
    raise _not_a_directory(root, path)


def _open_pub(root: RootDirectory) -> int:
    """`pub`, also behind a link of a trusted owner."""
    try:
        return os.open(_PUB, DIRECTORY_ITSELF, dir_fd=root.fd)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
    # The link itself is held, so that its owner is the owner of what is followed (open(2), O_PATH).
    with closing(os.open(_PUB, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root.fd)) as link:
        status = os.fstat(link)
        if not stat.S_ISLNK(status.st_mode):
            raise _not_a_directory(root, _PUB)
        if status.st_uid not in (os.geteuid(), 0):
            raise ConfigError(
                f"pub is a symbolic link of another user (uid {status.st_uid}), which is not followed: "
                f"{to_text(root.absolute(_PUB))}"
            )
        target = os.readlink(b"", dir_fd=link)
    try:
        return os.open(target, DIRECTORY, dir_fd=root.fd)
    except (FileNotFoundError, NotADirectoryError):
        raise _not_a_directory(root, _PUB) from None


def _link(root: RootDirectory, path: bytes) -> ConfigError:
    return ConfigError(
        f"this is a symbolic link, and publish writes and removes nothing through one: {to_text(root.absolute(path))}"
    )


def _not_a_directory(root: RootDirectory, path: bytes) -> FormatError:
    return FormatError(f"a dangling link, or not a directory: {to_text(root.absolute(path))}")
