"""The part that all our stores share: check first, then hand a key to the backend."""

from __future__ import annotations

import builtins
import errno
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import IO, Any, BinaryIO

from oh_jupyter.errors import (
    StoreConfigError,
    StoreIsDirectoryError,
    StoreNotDirectoryError,
    StoreNotFoundError,
)
from oh_jupyter.storage.atomic import AtomicFile, AtomicTextFile, spooled
from oh_jupyter.storage.base import (
    FileInfo,
    FileStore,
    OpenMode,
    contents_bytes,
    contents_text,
    directory_info,
)
from oh_jupyter.storage.paths import file_key, path_key


class KeyedFileStore(FileStore, ABC):
    """A store whose backend deals in keys and bytes only.

    Subclasses implement the methods with an underscore, and report a missing file by `_missing`.
    """

    @abstractmethod
    def _put(self, key: str, data: bytes) -> None:
        """Store the bytes under the key, replacing what is there in one step."""

    @abstractmethod
    def _get(self, key: str) -> bytes:
        """Fetch the bytes of the key."""

    @abstractmethod
    def _children(self, key: str) -> tuple[builtins.list[str], builtins.list[str]]:
        """Name the directories and the files directly below the key."""

    @abstractmethod
    def _remove(self, key: str) -> None:
        """Delete the key and everything below it, if it is there."""

    @abstractmethod
    def _info(self, key: str) -> FileInfo:
        """Describe what is at the key."""

    @abstractmethod
    def _open_read(self, key: str) -> BinaryIO:
        """Open the key for reading, buffered."""

    @abstractmethod
    def _put_file(self, key: str, source: str) -> None:
        """Store the contents of a local file under the key, replacing in one step."""

    @abstractmethod
    def _put_new(self, key: str, data: bytes) -> None:
        """Store the bytes if nothing is there yet, in one step."""

    def _open_write(self, key: str) -> AtomicFile:
        """Open the key for writing; what is written waits in a temporary file."""
        return spooled(lambda source: self._put_file(key, source))

    def _put_many(self, files: Mapping[str, bytes]) -> None:
        for key, data in files.items():
            self._put(key, data)

    def _get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Fetch the bytes of those keys that are there."""
        found: dict[str, bytes] = {}
        for key in keys:
            try:
                found[key] = self._get(key)
            except FileNotFoundError:
                continue
        return found

    def _remove_many(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._remove(key)

    def _missing(self, key: str) -> FileNotFoundError:
        return StoreNotFoundError(errno.ENOENT, f"{self!r} has nothing at this path", key)

    def _exists_already(self, key: str) -> FileExistsError:
        return FileExistsError(errno.EEXIST, f"{self!r} has something at this path", key)

    def _is_directory(self, key: str) -> IsADirectoryError:
        return StoreIsDirectoryError(errno.EISDIR, f"{self!r} has a directory at this path", key)

    def _not_directory(self, key: str) -> NotADirectoryError:
        return StoreNotDirectoryError(
            errno.ENOTDIR, f"{self!r} has a file at this path, or at one of its parents", key
        )

    def write(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        self._put(file_key(path), contents_bytes(contents, path))

    def create(self, path: str, contents: str | bytes) -> None:  # noqa: D102
        if type(self).write is not KeyedFileStore.write:
            # Whoever changes what writing means does not expect a way around it.
            super().create(path, contents)
            return
        self._put_new(file_key(path), contents_bytes(contents, path))

    def read(self, path: str) -> str:  # noqa: D102
        return contents_text(self._get(file_key(path)), path)

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        return self._get(file_key(path))

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        key = path_key(path)
        directories, files = self._children(key)
        start = key + "/" if key else ""
        found = [start + name for name in files]
        found += [f"{start}{name}/" for name in directories]
        found.sort()
        return found

    def delete(self, path: str) -> None:  # noqa: D102
        self._remove(path_key(path))

    def info(self, path: str) -> FileInfo:  # noqa: D102
        key = path_key(path)
        return self._info(key) if key else directory_info("")

    def open(self, path: str, mode: OpenMode = "r") -> IO[Any]:  # noqa: D102
        key = file_key(path)
        if mode == "rb":
            return self._open_read(key)
        if mode in ("r", "rt"):
            # newline="" hands out line ends as they are stored.
            return io.TextIOWrapper(self._open_read(key), encoding="utf-8", newline="")
        if mode == "wb":
            return self._open_write(key)
        if mode in ("w", "wt"):
            return AtomicTextFile(self._open_write(key))
        raise StoreConfigError(
            f"{path!r} cannot be opened in mode {mode!r}; use 'r', 'w', 'rb' or 'wb'."
        )

    def write_many(self, files: Mapping[str, str | bytes]) -> None:  # noqa: D102
        self._put_many(
            {file_key(path): contents_bytes(contents, path) for path, contents in files.items()}
        )

    def read_many(  # noqa: D102
        self, paths: Iterable[str], *, missing_ok: bool = False
    ) -> dict[str, bytes]:
        keys = {path: file_key(path) for path in paths}
        found = self._get_many(dict.fromkeys(keys.values()))
        if not missing_ok:
            for key in keys.values():
                if key not in found:
                    raise self._missing(key)
        return {path: found[key] for path, key in keys.items() if key in found}

    def delete_many(self, paths: Iterable[str]) -> None:  # noqa: D102
        self._remove_many(list(dict.fromkeys(path_key(path) for path in paths)))
