"""The files of one save, as they were when it was listed, and their content."""

from __future__ import annotations

from collections.abc import Mapping

from publish.domain.entry import join, to_text
from publish.domain.errors import FormatError
from publish.domain.listing import saved_files
from publish.domain.ports import SavedFile, Store


class FileVanished(Exception):
    """A file that was listed is not there any more."""


class SaveFiles:
    """A save: a folder, or one file, which counts as the only one of its folder."""

    def __init__(self, store: Store, folder: bytes, files: Mapping[bytes, SavedFile]) -> None:
        """`files`: by their path relative to `folder`."""
        self._store = store
        self._folder = folder
        self.files = files

    @classmethod
    def listed(cls, store: Store, path: bytes) -> SaveFiles:
        """The save at `path`; without files if there is none."""
        files = {file.path: file for file in saved_files(store, path)}
        if files:
            return cls(store, path, files)
        folder, _, name = path.rpartition(b"/")
        size = _file_size(store, path)
        if size is None:
            return cls(store, path, {})
        return cls(store, folder, {name: SavedFile(name, size, store.version(path) or "")})

    @property
    def name(self) -> bytes:
        """The name of the folder."""
        return self._folder.rpartition(b"/")[2]

    def exists(self) -> bool:
        """Whether the folder exists, files in it or not; a link that leads nowhere does not."""
        return self._store.exists(self._folder) and self._store.real_path(self._folder) is not None

    def size(self, file: bytes) -> int:
        """In bytes, as listed."""
        return self.files[file].size

    def read(self, file: bytes, start: int, length: int) -> bytes:
        """Part of a file, as `Store.read_range`; nothing of a file that was listed as empty.

        Raises FileVanished, FormatError for a file that cannot be read, or a StoreFault.
        """
        if not self.size(file):
            return b""
        path = self._path(file)
        try:
            return self._store.read_range(path, start, length)
        except FormatError as fault:
            if not self._store.exists(path):
                raise FileVanished from fault
            raise FormatError(f"{to_text(path)}: {fault}") from fault

    def _path(self, file: bytes) -> bytes:
        return join(self._folder, file)


def _file_size(store: Store, path: bytes) -> int | None:
    """The size of a save that is a file, or a link to one below the root."""
    size = store.size(path)
    if size is not None:
        return size
    real = store.real_path(path)
    return None if real is None else store.size(real)
