"""Base class of our stores: validates arguments, then passes keys and bytes to the backend."""

from __future__ import annotations

import builtins
import contextlib
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
    """A store whose backend handles only keys and bytes.

    Subclasses implement the abstract methods, and raise `_missing` for a missing file.
    """

    @abstractmethod
    def _put(self, key: str, data: bytes) -> None:
        """Store the bytes under the key, replacing the previous contents atomically."""

    @abstractmethod
    def _get(self, key: str) -> bytes:
        """Return the bytes of the key."""

    @abstractmethod
    def _children(self, key: str) -> tuple[builtins.list[str], builtins.list[str]]:
        """Return the names of the directories and of the files directly below the key."""

    @abstractmethod
    def _remove(self, key: str) -> None:
        """Delete the key and everything below it, if it exists."""

    @abstractmethod
    def _info(self, key: str) -> FileInfo:
        """Return metadata of the key."""

    @abstractmethod
    def _open_read(self, key: str) -> BinaryIO:
        """Open the key for reading, buffered."""

    @abstractmethod
    def _put_file(self, key: str, source: str) -> None:
        """Store a local file under the key, replacing the previous contents atomically."""

    @abstractmethod
    def _put_new(self, key: str, data: bytes) -> None:
        """Store the bytes atomically, if the key does not exist."""

    def _open_write(self, key: str) -> AtomicFile:
        """Open the key for writing, through a temporary file."""
        return spooled(lambda source: self._put_file(key, source))

    def _put_many(self, files: Mapping[str, bytes]) -> None:
        for key, data in files.items():
            self._put(key, data)

    def _get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of the keys that exist."""
        contents: dict[str, bytes] = {}
        for key in keys:
            with contextlib.suppress(FileNotFoundError):
                contents[key] = self._get(key)
        return contents

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
            # A subclass that overrides write() does not expect another way of writing.
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
        return sorted(
            [*(start + name for name in files), *(f"{start}{name}/" for name in directories)]
        )

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
            # newline="" keeps line endings unchanged.
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
        contents = self._get_many(dict.fromkeys(keys.values()))
        if not missing_ok:
            for key in keys.values():
                if key not in contents:
                    raise self._missing(key)
        return {path: contents[key] for path, key in keys.items() if key in contents}

    def delete_many(self, paths: Iterable[str]) -> None:  # noqa: D102
        self._remove_many(list(dict.fromkeys(path_key(path) for path in paths)))
