"""Open directories of a local store, with atomic writes and deletions of their files.

Each directory is opened relative to its parent and must not be a link, which prevents races with a
link swapped in. Windows has no such calls, so there the names are checked one after another.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from oh_jupyter.errors import StorePathError

_BY_DESCRIPTOR = (
    os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
)
# O_PATH needs no permission to list the directory, just like a plain path.
_SEARCH = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | _NOFOLLOW
_MAX_ATTEMPTS = 50


class Directory:
    """An open directory; its descriptor serves as ``dir_fd`` if the platform supports that."""

    __slots__ = ("_path", "fd")

    def __init__(self, path: str, fd: int | None) -> None:
        self._path = path
        self.fd = fd

    def at(self, name: str) -> str:
        """Return the path of an entry, for a call with ``dir_fd=self.fd``."""
        return name if self.fd is not None else os.path.join(self._path, name)

    def below(self, segments: Sequence[str], *, create: bool = False) -> Directory:
        """Open a directory below this one; raise StorePathError for a link."""
        if self.fd is None:
            return _open_by_name(self._path, segments, create)
        fd = _descend(os.dup(self.fd), segments, create)
        return Directory(os.path.join(self._path, *segments), fd)

    def open_new(self, name: str) -> IO[bytes]:
        """Open a file for writing, as an empty one; a link is not followed."""

        def open_file(path: str, flags: int) -> int:
            return os.open(path, flags | _NOFOLLOW, 0o666, dir_fd=self.fd)

        return open(self.at(name), "wb", opener=open_file)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Iterate over the entries; call their methods with ``follow_symlinks=False``."""
        if self.fd is None:
            with os.scandir(self._path) as scan:
                yield from scan
            return
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.fd)
        try:
            with os.scandir(readable) as scan:
                yield from scan
        finally:
            os.close(readable)

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its descriptor."""
        if self.fd is not None:
            os.close(self.fd)


def open_directory(root: str, segments: Sequence[str], *, create: bool = False) -> Directory:
    """Open a directory below a root; raise StorePathError for a link below the root."""
    path = "/".join([root, *segments])
    if _BY_DESCRIPTOR:
        try:
            fd = os.open(path, _SEARCH)
        except OSError:
            pass
        else:
            if is_real_path(fd, path):
                return Directory(path, fd)
            os.close(fd)
    if create:
        os.makedirs(root, exist_ok=True)
    if not _BY_DESCRIPTOR:
        return _open_by_name(root, segments, create)
    fd = _descend(os.open(root, _SEARCH), segments, create)
    return Directory(os.path.join(root, *segments), fd)


def _descend(fd: int, segments: Sequence[str], create: bool) -> int:
    """Open one directory after the other, and close those before the last."""
    try:
        for segment in segments:
            inner = _open_below(fd, segment, create)
            os.close(fd)
            fd = inner
    except BaseException:
        os.close(fd)
        raise
    return fd


def is_real_path(fd: int, path: str) -> bool:
    """Return whether an absolute path of an open file contains no links; False if unknown."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == path
    except OSError:
        return False


def is_link(status: os.stat_result) -> bool:
    """Return whether an ``lstat`` result is a symbolic link or a junction."""
    if sys.platform == "win32":
        return bool(status.st_reparse_tag) or stat.S_ISLNK(status.st_mode)
    return stat.S_ISLNK(status.st_mode)


def _open_below(fd: int, segment: str, create: bool) -> int:
    try:
        return os.open(segment, _SEARCH | _NOFOLLOW, dir_fd=fd)
    except FileNotFoundError:
        if not create:
            raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(segment, dir_fd=fd)
        return os.open(segment, _SEARCH | _NOFOLLOW, dir_fd=fd)
    except OSError as error:
        # A link gives ENOTDIR or ELOOP, depending on the platform.
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            _check_directory(os.stat(segment, dir_fd=fd, follow_symlinks=False), segment)
        raise


def _open_by_name(root: str, segments: Sequence[str], create: bool) -> Directory:
    path = root
    for segment in segments:
        path = os.path.join(path, segment)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            if not create:
                raise
            os.makedirs(path, exist_ok=True)
            status = os.lstat(path)
        _check_directory(status, segment)
    return Directory(path, None)


def _check_directory(status: os.stat_result, segment: str) -> None:
    if is_link(status):
        raise StorePathError(
            f"{segment!r} in the path is a symbolic link, which a store does not follow; "
            "open a separate store with the link's target as its root."
        )
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), segment)


def _mode_of(directory: Directory, name: str) -> int | None:
    """Return the permissions of a regular file; None if it does not exist."""
    try:
        status = os.stat(directory.at(name), dir_fd=directory.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if is_link(status):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise StorePathError(f"{name!r} is not a regular file; name another one.")
    return stat.S_IMODE(status.st_mode)


def _temporary_name() -> str:
    """Return a random name that listings of the store hide."""
    return f".oh-{secrets.token_hex(8)}.tmp"


def open_temporary(directory: Directory, name: str) -> tuple[str, int]:
    """Open a temporary file with the permissions of the file that it will replace."""
    mode = _mode_of(directory, name)
    temporary = directory.at(_temporary_name())
    handle = os.open(temporary, _CREATE, 0o666, dir_fd=directory.fd)
    if mode is not None and hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    return temporary, handle


def replace(directory: Directory, temporary: str, name: str, *, fsync: bool) -> None:
    """Rename a temporary file to its final name; with ``fsync``, sync the directory."""
    _move(os.replace, directory, temporary, name, fsync)


def write_file(directory: Directory, name: str, data: bytes, *, fsync: bool) -> None:
    """Write a file atomically."""
    temporary, handle = open_temporary(directory, name)
    with _DiscardOnError(directory, temporary):
        _fill(handle, data, fsync)
        _move(os.replace, directory, temporary, name, fsync)


def create_file(directory: Directory, name: str, data: bytes, *, fsync: bool) -> None:
    """Create a file atomically; raise FileExistsError if the name exists."""
    temporary = directory.at(_temporary_name())
    handle = os.open(temporary, _CREATE, 0o666, dir_fd=directory.fd)
    with _DiscardOnError(directory, temporary):
        _fill(handle, data, fsync)
        # os.link fails if the name exists.
        _move(os.link, directory, temporary, name, fsync)
    os.unlink(temporary, dir_fd=directory.fd)


def delete(directory: Directory, name: str) -> None:
    """Delete an entry and everything below it, despite concurrent writers."""
    path = directory.at(name)
    status = os.stat(path, dir_fd=directory.fd, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(path, dir_fd=directory.fd)
        return
    # Renamed first, so that concurrent writers cannot refill it.
    renamed = directory.at(_temporary_name())
    try:
        os.rename(path, renamed, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    except FileNotFoundError:
        return
    except OSError:  # such as a mount point
        _delete_tree(directory, path)
        return
    try:
        _delete_tree(directory, renamed)
    except OSError:
        with contextlib.suppress(OSError):  # show what could not be deleted
            os.rename(renamed, path, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        raise


def _fill(handle: int, data: bytes, fsync: bool) -> None:
    try:
        written = os.write(handle, data)
        while written < len(data):
            written += os.write(handle, memoryview(data)[written:])
        if fsync:
            os.fsync(handle)
    finally:
        os.close(handle)


class _DiscardOnError:
    """Delete a temporary file if the block fails."""

    __slots__ = ("_directory", "_temporary")

    def __init__(self, directory: Directory, temporary: str) -> None:
        self._directory = directory
        self._temporary = temporary

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._directory.fd)


def _move(
    move: Callable[..., Any], directory: Directory, temporary: str, name: str, fsync: bool
) -> None:
    move(temporary, directory.at(name), src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    if fsync and directory.fd is not None:
        readable = os.open(".", os.O_RDONLY, dir_fd=directory.fd)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)


def _delete_tree(directory: Directory, path: str) -> None:
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        try:
            shutil.rmtree(path, dir_fd=directory.fd)
            return
        except OSError as error:
            # A concurrent write or deletion may still be running in there.
            is_race = error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
            if not is_race or attempt == _MAX_ATTEMPTS:
                raise
            with contextlib.suppress(FileNotFoundError):
                os.stat(path, dir_fd=directory.fd, follow_symlinks=False)
                continue
            return
