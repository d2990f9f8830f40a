"""Store in a local directory.

fsspec's local filesystem writes in place, follows links, and keeps transactions on another disk.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO, TypeVar

from oh_jupyter.errors import StorageError, StoreConfigError, StorePathError
from oh_jupyter.locks import file_lock
from oh_jupyter.storage.atomic import AtomicFile
from oh_jupyter.storage.base import FileInfo, directory_info, file_info
from oh_jupyter.storage.keyed import KeyedFileStore
from oh_jupyter.storage.local.directory import (
    Directory,
    create_file,
    delete,
    is_link,
    is_real_path,
    open_directory,
    open_temporary,
    replace,
    write_file,
)
from oh_jupyter.storage.paths import file_key, path_key
from oh_jupyter.text import shorten

_T = TypeVar("_T")
_TEMPORARY = re.compile(r"\.oh-[0-9a-f]{16}\.tmp")
_BINARY = getattr(os, "O_BINARY", 0)
# O_NONBLOCK: opening a named pipe must not wait for a writer.
_READ = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_MAX_ATTEMPTS = 50
_COPY_BYTES = 1 << 20


class LocalFileStore(KeyedFileStore):
    """A store in a directory. It never follows symbolic links below that directory.

    Links, pipes and sockets are not listed and cannot be read or written; deleting a link
    deletes the link. Empty directories stay, as in OpenHands.

    Args:
        root: The directory; ``~`` is expanded, and a missing directory is created.
        fsync: Sync each write to the disk.

    Attributes:
        root: Absolute path of the directory.
    """

    def __init__(self, root: str, *, fsync: bool = False) -> None:
        if not isinstance(root, (str, os.PathLike)) or not os.fspath(root):
            raise StoreConfigError(
                f"A local store needs a directory path, not {root!r}; "
                "set file_store_path, for example to '~/.openhands'."
            )
        self.root = os.path.abspath(os.path.expanduser(os.fspath(root)))
        self._real = os.path.realpath(self.root)
        self._fsync = fsync
        try:
            os.makedirs(self.root, exist_ok=True)
        except OSError as error:
            raise StorageError(
                error.errno, f"Cannot create the store's directory: {error.strerror}", self.root
            ) from error

    def __repr__(self) -> str:
        return f"LocalFileStore({self.root!r})"

    def get_full_path(self, path: str) -> str:
        """Return the absolute path of a file.

        Args:
            path: Path relative to the store's root.

        Returns:
            Its absolute path.

        Raises:
            StorePathError: If it leaves the root.
        """
        return os.path.join(self.root, *path_key(path).split("/"))

    get_absolute_path = get_full_path

    @contextlib.contextmanager
    def lock(self, path: str, timeout: float = 30.0) -> Iterator[None]:  # noqa: D102
        key = file_key(path)
        self._in_directory_of(key, lambda directory: None)
        with file_lock(os.path.join(self._real, *self._segments(key)), timeout, mode=0o644):
            yield

    def _put(self, key: str, data: bytes) -> None:
        name, fsync = key.rpartition("/")[2], self._fsync
        self._in_directory_of(key, lambda parent: write_file(parent, name, data, fsync=fsync))

    def _put_new(self, key: str, data: bytes) -> None:
        name, fsync = key.rpartition("/")[2], self._fsync
        self._in_directory_of(key, lambda parent: create_file(parent, name, data, fsync=fsync))

    def _put_file(self, key: str, source: str) -> None:
        with open(source, "rb") as reader, self._open_write(key) as writer:
            shutil.copyfileobj(reader, writer, _COPY_BYTES)

    def _open_write(self, key: str) -> AtomicFile:
        def open_file(directory: Directory) -> AtomicFile:
            # A duplicate: the file stays open after this directory is closed.
            fd = None if directory.fd is None else os.dup(directory.fd)
            duplicate = Directory(directory.at(""), fd)
            try:
                return self._open_temporary(duplicate, key)
            except BaseException:
                duplicate.__exit__()
                raise

        return self._in_directory_of(key, open_file)

    def _open_temporary(self, directory: Directory, key: str) -> AtomicFile:
        name = key.rpartition("/")[2]
        temporary, handle = open_temporary(directory, name)

        def publish(raw: io.FileIO) -> None:
            if self._fsync:
                os.fsync(raw.fileno())
            raw.close()
            with self._translated_errors(key):
                replace(directory, temporary, name, fsync=self._fsync)
            directory.__exit__()

        def discard() -> None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory.fd)
            directory.__exit__()

        return AtomicFile(io.FileIO(handle, "r+"), publish, discard)

    def _get(self, key: str) -> bytes:
        handle = self._open_directly(key)
        if handle is None:
            with self._open_raw(key) as file:
                return file.readall()
        try:
            size = os.fstat(handle).st_size
            data = os.read(handle, size + 1)
            if len(data) == size:
                return data
            # The read was short, or the file grew: read to the end.
            chunks = [data]
            while chunk := os.read(handle, _COPY_BYTES):
                chunks.append(chunk)
            return b"".join(chunks)
        finally:
            os.close(handle)

    def _open_directly(self, key: str) -> int | None:
        """Open a regular file by its whole path; None if the path may contain a link."""
        if ".oh-" in key or os.name == "nt":
            return None
        path = f"{self._real}/{key}"
        try:
            handle = os.open(path, _READ)
        except OSError:
            return None
        if is_real_path(handle, path) and stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
        return None

    def _open_read(self, key: str) -> BinaryIO:
        return io.BufferedReader(self._open_raw(key))

    def _open_raw(self, key: str) -> io.FileIO:
        *segments, name = self._segments(key)
        try:
            with self._translated_errors(key), open_directory(self._real, segments) as directory:
                path = directory.at(name)
                if directory.fd is None and is_link(os.lstat(path)):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                handle = os.open(path, _READ, dir_fd=directory.fd)
        except NotADirectoryError:
            raise self._missing(key) from None
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            return io.FileIO(handle)
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise self._is_directory(key)
        raise StorePathError(f"{key!r} in {self!r} is not a regular file; name another one.")

    def _children(self, key: str) -> tuple[list[str], list[str]]:
        directories: list[str] = []
        files: list[str] = []
        with (
            self._translated_errors(key),
            open_directory(self._real, self._segments(key)) as directory,
        ):
            for entry in directory.entries():
                name = entry.name
                if (name[:1] == "." and _TEMPORARY.fullmatch(name)) or not _is_text(name):
                    continue
                if entry.is_file(follow_symlinks=False):
                    files.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    directories.append(name)
        return directories, files

    def _remove(self, key: str) -> None:
        segments = self._segments(key)
        try:
            with self._translated_errors(key):
                if not segments:
                    with open_directory(self._real, []) as root:
                        for entry in list(root.entries()):
                            delete(root, entry.name)
                    return
                with open_directory(self._real, segments[:-1]) as directory:
                    delete(directory, segments[-1])
        except (FileNotFoundError, NotADirectoryError):
            return

    def _info(self, key: str) -> FileInfo:
        *segments, name = self._segments(key)
        try:
            with self._translated_errors(key), open_directory(self._real, segments) as directory:
                status = os.stat(directory.at(name), dir_fd=directory.fd, follow_symlinks=False)
        except NotADirectoryError:
            raise self._missing(key) from None
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
        if stat.S_ISDIR(status.st_mode):
            return directory_info(key, modified)
        if not stat.S_ISREG(status.st_mode):
            raise self._missing(key)
        return file_info(key, status.st_size, modified)

    def _in_directory_of(self, key: str, use: Callable[[Directory], _T]) -> _T:
        """Call ``use`` with the parent directory of the key, creating it if it is missing."""
        segments = self._segments(key)[:-1]
        with self._translated_errors(key):
            for _ in range(_MAX_ATTEMPTS):
                # The directory may be deleted between its creation and its use.
                with (
                    contextlib.suppress(FileNotFoundError),
                    open_directory(self._real, segments, create=True) as directory,
                ):
                    return use(directory)
            raise StorageError(errno.EBUSY, "Its directory is deleted again and again", key)

    def _segments(self, key: str) -> list[str]:
        segments = key.split("/") if key else []
        for segment in segments:
            if _TEMPORARY.fullmatch(segment):
                raise StorePathError(
                    f"{segment!r} in the path is reserved for temporary files of the store; "
                    "choose another name."
                )
            if os.name == "nt" and (
                set(segment) & set('\\:<>"|?*') or segment.endswith((".", " "))
            ):
                raise StorePathError(
                    f"{segment!r} in the path is not a valid file name on Windows; choose another."
                )
        return segments

    @contextlib.contextmanager
    def _translated_errors(self, key: str) -> Iterator[None]:
        """Translate errors of the system into the exceptions that all stores share."""
        try:
            yield
        except StorageError:
            raise
        except FileNotFoundError:
            raise self._missing(key) from None
        except IsADirectoryError:
            raise self._is_directory(key) from None
        except NotADirectoryError:
            raise self._not_directory(key) from None
        except FileExistsError:
            raise self._exists_already(key) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise StorePathError(
                    f"{key!r} in {self!r} is a symbolic link, which a store does not follow; "
                    "name its target instead."
                ) from None
            if error.errno in (errno.ENAMETOOLONG, errno.EINVAL):
                raise StorePathError(
                    f"{shorten(key, 80)!r} is not a valid path on the disk of {self!r} "
                    f"({error.strerror}); use shorter names."
                ) from error
            raise StorageError(error.errno, f"{self!r} failed: {error.strerror}", key) from error


def _is_text(name: str) -> bool:
    if name.isascii():
        return True
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
