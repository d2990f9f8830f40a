"""Files that appear in a directory as a whole: written beside their place, then moved there."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from oh_jupyter.storage.local.directory import Directory, mode_of
from oh_jupyter.storage.local.removal import temporary_name

__all__ = ["open_beside", "place", "place_new", "replace"]

_CREATE = (
    os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
)


def open_beside(directory: Directory, name: str) -> tuple[str, int]:
    """Open a temporary file that is going to replace another one.

    Args:
        directory: Where both are.
        name: What it is going to replace; it gets the same permissions.

    Returns:
        What to call it in that directory, and its descriptor.
    """
    mode = mode_of(directory, name)
    temporary = directory.at(temporary_name())
    handle = os.open(temporary, _CREATE, 0o666, dir_fd=directory.fd)
    if mode is not None and hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    return temporary, handle


def replace(directory: Directory, temporary: str, name: str, *, fsync: bool) -> None:
    """Move a temporary file to its place.

    Args:
        directory: Where both are.
        temporary: What it is called so far.
        name: What it replaces.
        fsync: Wait until the disk has the move.
    """
    _move(os.replace, directory, temporary, name, fsync)


def place(directory: Directory, name: str, data: bytes, *, fsync: bool) -> None:
    """Write a file as a whole, or leave what is there.

    Args:
        directory: Where.
        name: Its name.
        data: Its contents.
        fsync: Wait until the disk has it.
    """
    temporary, handle = open_beside(directory, name)
    _fill(directory, temporary, handle, data, fsync)
    _finish(os.replace, directory, temporary, name, fsync)


def place_new(directory: Directory, name: str, data: bytes, *, fsync: bool) -> None:
    """Write a file as a whole, if there is none.

    Args:
        directory: Where.
        name: Its name.
        data: Its contents.
        fsync: Wait until the disk has it.

    Raises:
        FileExistsError: If there is something.
    """
    temporary = directory.at(temporary_name())
    handle = os.open(temporary, _CREATE, 0o666, dir_fd=directory.fd)
    _fill(directory, temporary, handle, data, fsync)
    # A link can be made only where there is nothing yet.
    _finish(os.link, directory, temporary, name, fsync)
    os.unlink(temporary, dir_fd=directory.fd)


def _fill(directory: Directory, temporary: str, handle: int, data: bytes, fsync: bool) -> None:
    try:
        written = os.write(handle, data)
        while written < len(data):
            written += os.write(handle, memoryview(data)[written:])
        if fsync:
            os.fsync(handle)
        os.close(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(handle)
        _drop(directory, temporary)
        raise


def _finish(move: Any, directory: Directory, temporary: str, name: str, fsync: bool) -> None:
    try:
        _move(move, directory, temporary, name, fsync)
    except BaseException:
        _drop(directory, temporary)
        raise


def _move(move: Any, directory: Directory, temporary: str, name: str, fsync: bool) -> None:
    move(temporary, directory.at(name), src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
    if fsync and directory.fd is not None:
        readable = os.open(".", os.O_RDONLY, dir_fd=directory.fd)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)


def _drop(directory: Directory, temporary: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(temporary, dir_fd=directory.fd)
