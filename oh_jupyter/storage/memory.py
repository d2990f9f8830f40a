"""Files in a dict.

fsspec's memory filesystem is one dict per process; callers of OpenHands' store pass their own.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, MutableMapping
from typing import Any, BinaryIO

from oh_jupyter.storage.base import FileInfo, directory_info, file_info
from oh_jupyter.storage.keyed import KeyedFileStore
from oh_jupyter.storage.paths import join, path_key


class _FileDict(dict[str, str | bytes]):
    """Files by path, with an index of directories that follows every change of the dict."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, dict[str, int]] = {}  # by directory: number of files below each name

    def __setitem__(self, path: str, contents: str | bytes) -> None:
        if path not in self:
            self._count(path_key(path), 1)
        super().__setitem__(path, contents)

    def __delitem__(self, path: str) -> None:
        super().__delitem__(path)
        self._count(path_key(path), -1)

    def _count(self, key: str, change: int) -> None:
        while key:
            directory, _, name = key.rpartition("/")
            names = self.names.setdefault(directory, {})
            names[name] = names.get(name, 0) + change
            if not names[name]:
                del names[name]
                if not names:
                    del self.names[directory]
            key = directory

    def below(self, key: str) -> Iterator[str]:
        """Iterate over the keys of all files below a directory."""
        for name in self.names.get(key, ()):
            inner = join(key, name)
            if inner in self or "/" + inner in self:
                yield inner
            yield from self.below(inner)

    def pop(self, path: str, *default: Any) -> Any:
        contents = super().get(path)
        if contents is None:
            return super().pop(path, *default)
        del self[path]
        return contents

    # dict's own versions would bypass the index.
    setdefault = MutableMapping.setdefault
    update = MutableMapping.update

    def popitem(self) -> tuple[str, str | bytes]:
        path, contents = super().popitem()
        self._count(path_key(path), -1)
        return path, contents

    def __ior__(self, files: Any) -> _FileDict:  # type: ignore[override,misc]
        self.update(files)
        return self

    def clear(self) -> None:
        super().clear()
        self.names.clear()


class InMemoryFileStore(KeyedFileStore):
    """A store in memory. Directories exist while they contain files.

    Args:
        files: Dict to keep the files in, by path relative to the store's root; it may
            contain files already.

    Attributes:
        files: That dict: text by path, or bytes if a file is not UTF-8.
    """

    def __init__(self, files: dict[str, str] | None = None) -> None:
        self.files: dict[str, str | bytes] = (
            _FileDict() if files is None else files  # type: ignore[assignment]
        )
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "InMemoryFileStore()"

    def _put(self, key: str, data: bytes) -> None:
        contents = _text_if_utf8(data)
        with self._lock:
            self.files[self._spelling(key)] = contents

    def _put_new(self, key: str, data: bytes) -> None:
        contents = _text_if_utf8(data)
        with self._lock:
            if self._spelling(key) in self.files or self._is_directory_key(key):
                raise self._exists_already(key)
            self.files[key] = contents

    def _put_file(self, key: str, source: str) -> None:
        with open(source, "rb") as file:
            self._put(key, file.read())

    def _get(self, key: str) -> bytes:
        with self._lock:
            contents = self.files.get(self._spelling(key))
            if contents is None:
                is_directory = self._is_directory_key(key)
                raise self._is_directory(key) if is_directory else self._missing(key)
        return contents.encode("utf-8") if isinstance(contents, str) else contents

    def _open_read(self, key: str) -> BinaryIO:
        return io.BytesIO(self._get(key))

    def _children(self, key: str) -> tuple[list[str], list[str]]:
        start = key + "/" if key else ""
        stored = self.files
        with self._lock:
            if isinstance(stored, _FileDict):
                names = stored.names.get(key, {})
                directories = [name for name in names if start + name in stored.names]
                files = [n for n in names if start + n in stored or f"/{start}{n}" in stored]
            else:
                parts = [below[len(start) :].partition("/") for below in self._below(key)]
                directories = list(dict.fromkeys(name for name, slash, _ in parts if slash))
                files = [name for name, slash, _ in parts if not slash]
            if not directories and not files and self._spelling(key) in stored:
                raise self._not_directory(key)
        return directories, files

    def _remove(self, key: str) -> None:
        with self._lock:
            if key:
                self.files.pop(self._spelling(key), None)
            for below in self._below(key):
                del self.files[self._spelling(below)]

    def _info(self, key: str) -> FileInfo:
        with self._lock:
            contents = self.files.get(self._spelling(key))
            if contents is None and not self._is_directory_key(key):
                raise self._missing(key)
        if contents is None:
            return directory_info(key)
        size = len(contents.encode("utf-8") if isinstance(contents, str) else contents)
        return file_info(key, size)

    def _below(self, key: str) -> list[str]:
        """Return the keys below this one."""
        if isinstance(self.files, _FileDict):
            return list(self.files.below(key))
        prefix = key + "/" if key else ""
        keys = (_key_of(path) for path in list(self.files))
        return [key for key in keys if key.startswith(prefix)]

    def _is_directory_key(self, key: str) -> bool:
        if isinstance(self.files, _FileDict):
            return key in self.files.names
        return bool(self._below(key))

    def _spelling(self, key: str) -> str:
        """Return the key as spelled in the dict: callers may have added a leading slash."""
        return "/" + key if key not in self.files and "/" + key in self.files else key


def _text_if_utf8(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _key_of(path: str) -> str:
    return path if not path.startswith("/") else path_key(path)


def new_store(path: str | None = None) -> InMemoryFileStore:
    """Make an empty store; the path is ignored."""
    return InMemoryFileStore()
