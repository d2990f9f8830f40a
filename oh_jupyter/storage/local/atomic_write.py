"""Files that appear in a directory, or vanish from it, as a whole."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable
from typing import Any

from oh_jupyter.storage.local.directory import Directory, mode_of

__all__ = ["create_file", "delete", "open_temporary", "replace", "write_file"]

_CREATE = (
    os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
)
_MAX_ATTEMPTS = 50


def _temporary_name() -> str:
    """Make up a name that the store does not show."""
    return f".oh-{secrets.token_hex(8)}.tmp"


def open_temporary(directory: Directory, name: str) -> tuple[str, int]:
    """Open a temporary file that is going to replace another one, with its permissions."""
    mode = mode_of(directory, name)
    temporary = directory.at(_temporary_name())
    handle = os.open(temporary, _CREATE, 0o666, dir_fd=directory.fd)
    if mode is not None and hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    return temporary, handle


def replace(directory: Directory, temporary: str, name: str, *, fsync: bool) -> None:
    """Move a temporary file to its place; with ``fsync``, wait until the disk has the move."""
    _move(os.replace, directory, temporary, name, fsync)


def write_file(directory: Directory, name: str, data: bytes, *, fsync: bool) -> None:
    """Write a file as a whole, or leave what is there."""
    temporary, handle = open_temporary(directory, name)
    with _DiscardOnError(directory, temporary):
        _fill(handle, data, fsync)
        _move(os.replace, directory, temporary, name, fsync)


def create_file(directory: Directory, name: str, data: bytes, *, fsync: bool) -> None:
    """Write a file as a whole; FileExistsError if something is there."""
    temporary = directory.at(_temporary_name())
    handle = os.open(temporary, _CREATE, 0o666, dir_fd=directory.fd)
    with _DiscardOnError(directory, temporary):
        _fill(handle, data, fsync)
        # A link can be made only where there is nothing yet.
        _move(os.link, directory, temporary, name, fsync)
    os.unlink(temporary, dir_fd=directory.fd)


def delete(directory: Directory, name: str) -> None:
    """Delete an entry with everything below it, also while others write in there.

    An entry that cannot be deleted (OSError) is not hidden either.
    """
    path = directory.at(name)
    status = os.stat(path, dir_fd=directory.fd, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(path, dir_fd=directory.fd)
        return
    # Under another name nobody finds it any more, so a steady writer cannot keep it full.
    doomed = directory.at(_temporary_name())
    try:
        os.rename(path, doomed, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    except FileNotFoundError:
        return
    except OSError:  # such as a disk that is mounted there
        _delete_tree(directory, path)
        return
    try:
        _delete_tree(directory, doomed)
    except OSError:
        with contextlib.suppress(OSError):  # what could not be deleted shall not be hidden
            os.rename(doomed, path, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        raise


def _fill(handle: int, data: bytes, fsync: bool) -> None:
    """Write and close an open file."""
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
            # A write or another deletion that began before may still be going on in there.
            racing = error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
            if not racing or attempt == _MAX_ATTEMPTS:
                raise
            with contextlib.suppress(FileNotFoundError):
                os.stat(path, dir_fd=directory.fd, follow_symlinks=False)
                continue
            return
