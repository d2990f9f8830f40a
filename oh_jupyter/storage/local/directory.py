"""Open directories of a local store: no name in them can be led out of it.

Each directory on the way is opened relative to the one before and must not be a symbolic
link. The open directory stays the same even if somebody swaps a link into the path in
between, which a check of path names cannot promise. Where the platform has no calls
relative to an open directory (Windows), path names are checked one after another.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence

from oh_jupyter.errors import StorePathError

__all__ = ["Directory", "is_link", "leads_to", "mode_of", "open_directory"]

_BY_DESCRIPTOR = (
    os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
)
# O_PATH asks for no permission to list the directory, as plain path names do not either.
_SEARCH = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


class Directory:
    """A directory that is held open. A context manager.

    Attributes:
        fd: What to give as ``dir_fd``; None where the platform has no such thing.
    """

    __slots__ = ("_path", "fd")

    def __init__(self, path: str, fd: int | None) -> None:
        self._path = path
        self.fd = fd

    def at(self, name: str) -> str:
        """Name an entry for a call that also gets ``dir_fd=self.fd``.

        Args:
            name: One segment.

        Returns:
            What to pass as the path.
        """
        return name if self.fd is not None else os.path.join(self._path, name)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Go through the entries.

        Yields:
            Each entry; its methods need ``follow_symlinks=False``.
        """
        if self.fd is None:
            with os.scandir(self._path) as found:
                yield from found
            return
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.fd)
        try:
            with os.scandir(readable) as found:
                yield from found
        finally:
            os.close(readable)

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *error: object) -> None:
        if self.fd is not None:
            os.close(self.fd)


def open_directory(root: str, segments: Sequence[str], *, create: bool = False) -> Directory:
    """Open a directory of a store.

    Args:
        root: Absolute path of the store. It may itself be, or lie behind, a link.
        segments: The directories that lead from there to the one to open.
        create: Make those that are missing.

    Returns:
        The directory, to be closed by its ``with`` block.

    Raises:
        FileNotFoundError: If one is missing.
        NotADirectoryError: If one is a file.
        StorePathError: If one is a symbolic link.
    """
    if create:
        os.makedirs(root, exist_ok=True)
    if not _BY_DESCRIPTOR:
        return _open_by_name(root, segments, create)
    path = "/".join([root, *segments])
    with contextlib.suppress(OSError):
        fd = os.open(path, _SEARCH)
        if leads_to(fd, path):
            return Directory(path, fd)
        os.close(fd)
    fd = os.open(root, _SEARCH)
    try:
        for segment in segments:
            inner = _open_below(fd, segment, create)
            os.close(fd)
            fd = inner
    except BaseException:
        os.close(fd)
        raise
    return Directory(os.path.join(root, *segments), fd)


def leads_to(fd: int, path: str) -> bool:
    """Tell whether what was opened is what has the path, without any link on the way.

    It is asked afterwards, so nobody can swap a link in between.

    Args:
        fd: What was opened.
        path: Absolute, and without links as far as is known.

    Returns:
        False also where the system does not say; then each step has to be looked at.
    """
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == path
    except OSError:
        return False


def is_link(status: os.stat_result) -> bool:
    """Tell whether the status of an entry is that of a link to somewhere else.

    Args:
        status: From a call with ``follow_symlinks=False``.

    Returns:
        True for a symbolic link, and for a junction on Windows.
    """
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
            _refuse(os.stat(segment, dir_fd=fd, follow_symlinks=False), segment)
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
        _refuse(status, segment)
    return Directory(path, None)


def _refuse(status: os.stat_result, segment: str) -> None:
    if is_link(status):
        raise StorePathError(
            f"{segment!r} in the path is a symbolic link, and a store does not follow links; "
            "make the link's target the root of a store of its own."
        )
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), segment)


def mode_of(directory: Directory, name: str) -> int | None:
    """Find the permissions that a replaced file has and shall keep.

    Args:
        directory: Where it is.
        name: Its name.

    Returns:
        The permissions, or None if there is no such file.

    Raises:
        OSError: If it is something else than a regular file.
    """
    try:
        status = os.stat(directory.at(name), dir_fd=directory.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if is_link(status):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise StorePathError(f"{name!r} is no regular file; name another one.")
    return stat.S_IMODE(status.st_mode)
