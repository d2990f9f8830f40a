"""Interface of every store: OpenHands' four methods, and defaults for the rest.

Any class that provides these four methods is a full store here.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import IO, Any, Literal, TypedDict

from oh_jupyter.errors import StoreContentError
from oh_jupyter.locks import thread_lock
from oh_jupyter.storage.paths import file_key, join, path_key

OpenMode = Literal["r", "rt", "rb", "w", "wt", "wb"]
"""Modes of `FileStore.open`; text is UTF-8 with unchanged line endings."""

Contents = str | bytes | bytearray | memoryview
"""Contents of a file: text, stored as UTF-8, or bytes."""


class FileInfo(TypedDict):
    """Metadata of an entry; a plain dict, as in fsspec.

    Attributes:
        path: Relative to the store's root, without a trailing slash; ``""`` is the root.
        type: ``file`` or ``directory``.
        size: Bytes; None for a directory.
        modified: Time of the last change in UTC; None if the backend has none.
    """

    path: str
    type: Literal["file", "directory"]
    size: int | None
    modified: datetime | None


def file_info(path: str, size: int, modified: datetime | None = None) -> FileInfo:
    """Describe a file."""
    return FileInfo(path=path, type="file", size=size, modified=modified)


def directory_info(path: str, modified: datetime | None = None) -> FileInfo:
    """Describe a directory."""
    return FileInfo(path=path, type="directory", size=None, modified=modified)


def contents_bytes(contents: Contents, path: str) -> bytes:
    """Encode contents for writing; a StoreContentError names the path."""
    if isinstance(contents, bytes):
        return contents
    if isinstance(contents, (bytearray, memoryview)):
        return bytes(contents)
    if not isinstance(contents, str):
        raise StoreContentError(
            f"{path!r} was not written: its contents are {type(contents).__name__}; "
            "pass str or bytes."
        )
    try:
        return contents.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StoreContentError(
            f"{path!r} was not written: its text has a lone surrogate at position "
            f"{error.start}, which UTF-8 cannot encode; write bytes instead."
        ) from None


def contents_text(data: bytes, path: str) -> str:
    """Decode contents as UTF-8; a StoreContentError names the path."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StoreContentError(
            f"{path!r} is not UTF-8 text (byte {error.start} of {len(data)}); "
            "read it with read_bytes()."
        ) from None


class FileStore:
    """A store of files by path. Subclasses provide write, read, list and delete.

    Not an abstract base class: OpenHands' test suites define stores with only some of them.
    """

    def write(self, path: str, contents: str | bytes) -> None:
        """Write a whole file, creating its parent directories.

        Args:
            path: Path relative to the store's root.
            contents: Text, stored as UTF-8, or bytes; both unchanged.

        Raises:
            StorePathError: If the path leaves the root or cannot name a file.
            StoreContentError: If the contents are neither text nor bytes.
            StorageError: If the backend fails; the previous contents remain.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot write")

    def read(self, path: str) -> str:
        """Read a whole file as text.

        Args:
            path: Path relative to the store's root.

        Returns:
            The contents, decoded from UTF-8, with unchanged line endings.

        Raises:
            FileNotFoundError: If there is no such file, and only then.
            IsADirectoryError: If it is a directory.
            StoreContentError: If it is not UTF-8; `read_bytes` reads it.
            StorePathError: If the path leaves the root or cannot name a file.
            StorageError: If the backend fails.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot read")

    def list(self, path: str) -> builtins.list[str]:
        """List a directory.

        Args:
            path: Path relative to the store's root; ``""`` or ``"/"`` is the root.

        Returns:
            Sorted paths relative to the store's root; directories end with ``/``.

        Raises:
            FileNotFoundError: If a local store has no such directory; object stores
                return an empty list, as in OpenHands.
            NotADirectoryError: If it is a file.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot list")

    def delete(self, path: str) -> None:
        """Delete a file, or a directory and its contents; ignore a missing path.

        Args:
            path: Path relative to the store's root; ``""`` empties the store.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot delete")

    def create(self, path: str, contents: str | bytes) -> None:
        """Write a new file; of several concurrent callers, one succeeds.

        This is atomic on local and memory stores, S3, Google Cloud Storage, and wherever
        the server supports conditional creation.

        Args:
            path: Path relative to the store's root.
            contents: Text or bytes.

        Raises:
            FileExistsError: If the path exists; it is not changed.
        """
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "This path exists already", path)
        self.write(path, contents)

    def read_bytes(self, path: str) -> bytes:
        """Read a whole file as bytes.

        Args:
            path: Path relative to the store's root.

        Returns:
            The contents.

        Raises:
            FileNotFoundError: If there is no such file.
        """
        return self.read(path).encode("utf-8")

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists at a path.

        Args:
            path: Path relative to the store's root.

        Returns:
            True if it exists.
        """
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def info(self, path: str) -> FileInfo:
        """Return metadata of a file or directory.

        Args:
            path: Path relative to the store's root.

        Returns:
            Its type, its size and the time of its last change.

        Raises:
            FileNotFoundError: If the path does not exist.
        """
        key = path_key(path)
        if not key:
            return directory_info("")
        try:
            return file_info(key, len(self.read_bytes(key)))
        except (FileNotFoundError, IsADirectoryError):
            if self.list(key):
                return directory_info(key)
            raise

    def entries(self, path: str) -> builtins.list[FileInfo]:
        """List a directory with the metadata of each entry.

        Args:
            path: Path relative to the store's root.

        Returns:
            The `info` of each entry, in the order of `list`.

        Raises:
            FileNotFoundError: Like `list`.
            NotADirectoryError: If it is a file.
        """
        infos = []
        for entry in self.list(path):
            try:
                infos.append(
                    directory_info(path_key(entry)) if entry.endswith("/") else self.info(entry)
                )
            except FileNotFoundError:
                continue  # deleted since it was listed
        return infos

    def get_absolute_path(self, path: str) -> str:
        """Return the location of a file, for people and other OpenHands programs.

        Args:
            path: Path relative to the store's root.

        Returns:
            A path on this machine if there is one, otherwise a unique name.
        """
        return f"{type(self).__name__}/{id(self):x}/{path_key(path)}"

    @contextlib.contextmanager
    def lock(self, path: str, timeout: float = 30.0) -> Iterator[None]:
        """Hold an advisory lock, as in OpenHands' SDK.

        It excludes other callers in this process; on a local store, in all processes of
        the machine.

        Args:
            path: Name of the lock.
            timeout: Seconds to wait at most.

        Raises:
            TimeoutError: If the lock was not released in time.
        """
        with thread_lock(f"{id(self)}/{file_key(path)}", timeout):
            yield

    def walk(self, path: str = "") -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        """Walk a directory tree top down, like `os.walk`.

        Args:
            path: Start directory, relative to the store's root.

        Yields:
            The path of a directory, the names of its subdirectories, and the names of its
            files. Removing a subdirectory from the list skips it.
        """
        directory = path_key(path)
        directories: list[str] = []
        files: list[str] = []
        for entry in self.list(directory):
            name = entry.rstrip("/").rpartition("/")[2]
            (directories if entry.endswith("/") else files).append(name)
        yield directory, directories, files
        for name in directories:
            try:
                yield from self.walk(join(directory, name))
            except (FileNotFoundError, NotADirectoryError):
                continue  # deleted since it was listed

    def open(self, path: str, mode: OpenMode = "r") -> IO[Any]:
        """Open a file for streaming in constant memory.

        A written file becomes visible when it is closed; if the ``with`` block raises,
        nothing changes.

        Args:
            path: Path relative to the store's root.
            mode: ``r``, ``w``, ``rb`` or ``wb``.

        Returns:
            A file object; use it in a ``with`` statement.

        Raises:
            FileNotFoundError: If a file to read does not exist.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot stream; use read and write")

    def write_many(self, files: Mapping[str, str | bytes]) -> None:
        """Write many files, concurrently if the backend supports it.

        Args:
            files: Contents by path. All are validated before the first is written.
        """
        for path, contents in files.items():
            file_key(path)
            contents_bytes(contents, path)
        for path, contents in files.items():
            self.write(path, contents)

    def read_many(self, paths: Iterable[str], *, missing_ok: bool = False) -> dict[str, bytes]:
        """Read many files, concurrently if the backend supports it.

        Args:
            paths: Paths relative to the store's root.
            missing_ok: Skip missing files.

        Returns:
            Contents by path, in the order of the paths.

        Raises:
            FileNotFoundError: If a file is missing, unless ``missing_ok``.
        """
        contents: dict[str, bytes] = {}
        for path in paths:
            try:
                contents[path] = self.read_bytes(path)
            except FileNotFoundError:
                if not missing_ok:
                    raise
        return contents

    def delete_many(self, paths: Iterable[str]) -> None:
        """Delete many files or directories, concurrently if the backend supports it.

        Args:
            paths: Paths relative to the store's root; missing ones are ignored.
        """
        for path in paths:
            self.delete(path)
