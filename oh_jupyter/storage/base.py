"""The interface of every store: OpenHands' four methods to provide, and what follows from them.

A class that has only these, its own or anybody's, is a full store here.
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
"""How a file can be opened; text is UTF-8 and its line ends are kept as they are."""

Contents = str | bytes | bytearray | memoryview
"""What can be written: text, which is stored as UTF-8, or bytes."""


class FileInfo(TypedDict):
    """What a store knows about an entry without reading it; a plain dict, as in fsspec.

    Attributes:
        path: From the store's root, without a slash at the end; ``""`` is the root.
        type: ``file`` or ``directory``.
        size: Bytes; None for a directory.
        modified: Time of the last change in UTC; None where the backend has none.
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
    """Encode what is written; the path is for the StoreContentError if that is not possible."""
    if isinstance(contents, bytes):
        return contents
    if isinstance(contents, (bytearray, memoryview)):
        return bytes(contents)
    if not isinstance(contents, str):
        raise StoreContentError(
            f"{path!r} was not written: its contents are {type(contents).__name__}; "
            "give str or bytes."
        )
    try:
        return contents.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StoreContentError(
            f"{path!r} was not written: its text has a lone surrogate at position "
            f"{error.start}, which has no UTF-8 form; write bytes instead."
        ) from None


def contents_text(data: bytes, path: str) -> str:
    """Decode what is read; the path is for the StoreContentError if it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StoreContentError(
            f"{path!r} is not UTF-8 text (byte {error.start} of {len(data)}); "
            "read it with read_bytes()."
        ) from None


class FileStore:
    """Files by path, anywhere. Subclasses provide write, read, list and delete.

    It is no abstract base class on purpose: OpenHands' own suites make stores that have
    only some of the four.
    """

    def write(self, path: str, contents: str | bytes) -> None:
        """Write a whole file, and the directories that lead to it.

        Args:
            path: Where, from the store's root.
            contents: Text, stored as UTF-8, or bytes; both exactly as they are.

        Raises:
            StorePathError: If the path leaves the root or cannot name a file.
            StoreContentError: If the contents are neither text nor bytes.
            StorageError: If the backend refuses; the old contents are still there.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot write")

    def read(self, path: str) -> str:
        """Read a whole file as text.

        Args:
            path: Which, from the store's root.

        Returns:
            Its contents, decoded from UTF-8, with line ends as they are.

        Raises:
            FileNotFoundError: If there is no such file, and only then.
            IsADirectoryError: If it is a directory.
            StoreContentError: If it is not UTF-8; `read_bytes` reads it.
            StorePathError: If the path leaves the root or cannot name a file.
            StorageError: If the backend refuses.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot read")

    def list(self, path: str) -> builtins.list[str]:
        """List a directory.

        Args:
            path: Which, from the store's root; ``""`` or ``"/"`` is the root.

        Returns:
            Sorted paths from the store's root, those of directories ending with ``/``.

        Raises:
            FileNotFoundError: If there is no such directory, on a local store; where
                directories do not exist by themselves the result is empty, as in
                OpenHands.
            NotADirectoryError: If it is a file.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot list")

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with everything in it. A missing one is no error.

        Args:
            path: Which, from the store's root; ``""`` empties the store.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot delete")

    def create(self, path: str, contents: str | bytes) -> None:
        """Write a file that is not there yet. Of several who try it, one succeeds.

        That holds on local and memory stores, S3, Google Cloud Storage, and wherever the
        server can create conditionally.

        Args:
            path: Where, from the store's root.
            contents: Text or bytes.

        Raises:
            FileExistsError: If something is there; it is not changed.
        """
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "There is something at this path", path)
        self.write(path, contents)

    def read_bytes(self, path: str) -> bytes:
        """Read a whole file as bytes.

        Args:
            path: Which, from the store's root.

        Returns:
            Its contents.

        Raises:
            FileNotFoundError: If there is no such file.
        """
        return self.read(path).encode("utf-8")

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or a directory of that path.

        Args:
            path: Which, from the store's root.

        Returns:
            True if there is.
        """
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def info(self, path: str) -> FileInfo:
        """Say what the store knows about a file or directory.

        Args:
            path: Which, from the store's root.

        Returns:
            Its type, its size and when it changed.

        Raises:
            FileNotFoundError: If there is neither.
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
        """List a directory with what the store knows about each entry.

        Args:
            path: Which, from the store's root.

        Returns:
            What `info` says of each, in the order of `list`.

        Raises:
            FileNotFoundError: As `list`.
            NotADirectoryError: If it is a file.
        """
        found = []
        for entry in self.list(path):
            try:
                found.append(
                    directory_info(path_key(entry)) if entry.endswith("/") else self.info(entry)
                )
            except FileNotFoundError:
                continue  # somebody deleted it in between
        return found

    def get_absolute_path(self, path: str) -> str:
        """Say where a file is, for people and for other programs of OpenHands.

        Args:
            path: From the store's root.

        Returns:
            A path on this machine where there is one, else a name that tells files apart.
        """
        return f"{type(self).__name__}/{id(self):x}/{path_key(path)}"

    @contextlib.contextmanager
    def lock(self, path: str, timeout: float = 30.0) -> Iterator[None]:
        """Hold something that only one holds at a time, as OpenHands' SDK does.

        It keeps others out who ask for it: in this process, and on a local store in all
        processes of the machine.

        Args:
            path: What it is called.
            timeout: Seconds to wait at most.

        Raises:
            TimeoutError: If others held it all the time.
        """
        with thread_lock(f"{id(self)}/{file_key(path)}", timeout):
            yield

    def walk(self, path: str = "") -> Iterator[tuple[str, builtins.list[str], builtins.list[str]]]:
        """Go through a directory and everything below it, as `os.walk` does.

        Args:
            path: Where to start, from the store's root.

        Yields:
            The path of a directory, the names of the directories in it, and the names of
            the files. Taking names out of the first list keeps out of those directories.
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
                continue  # somebody deleted it while we were elsewhere

    def open(self, path: str, mode: OpenMode = "r") -> IO[Any]:
        """Open a file for streaming, in memory that does not grow with the file.

        A file that is being written becomes visible as a whole, when it is closed; if
        the ``with`` block ends by an exception, nothing changes.

        Args:
            path: Which, from the store's root.
            mode: ``r``, ``w``, ``rb`` or ``wb``.

        Returns:
            A file object; use it in a ``with`` statement.

        Raises:
            FileNotFoundError: If it is to be read and is not there.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot stream; use read and write")

    def write_many(self, files: Mapping[str, str | bytes]) -> None:
        """Write many files, concurrently where the backend can.

        Args:
            files: Contents by path. All are checked before the first one is written.
        """
        for path, contents in files.items():
            file_key(path)
            contents_bytes(contents, path)
        for path, contents in files.items():
            self.write(path, contents)

    def read_many(self, paths: Iterable[str], *, missing_ok: bool = False) -> dict[str, bytes]:
        """Read many files, concurrently where the backend can.

        Args:
            paths: Which, from the store's root.
            missing_ok: Leave out the files that are not there.

        Returns:
            Contents by path, in the order of the paths.

        Raises:
            FileNotFoundError: If one is not there, unless ``missing_ok``.
        """
        found: dict[str, bytes] = {}
        for path in paths:
            try:
                found[path] = self.read_bytes(path)
            except FileNotFoundError:
                if not missing_ok:
                    raise
        return found

    def delete_many(self, paths: Iterable[str]) -> None:
        """Delete many files or directories, concurrently where the backend can.

        Args:
            paths: Which, from the store's root; missing ones are no error.
        """
        for path in paths:
            self.delete(path)
