"""Open files, which stay the same whatever becomes of their paths.

A process of an agent can replace a directory by a link between two calls that name it. What is
opened once, component by component and without links, cannot be redirected. Linux also tells the
path of what is open, and leads to it again.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import IO

_DESCRIPTORS = "/proc/self/fd"
_DELETED = " (deleted)"

SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
"""Flags that open a directory to reach what is in it, without the permission to list it."""

NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def has_paths() -> bool:
    """Return whether the system tells the paths of open files, and leads to them."""
    return hasattr(os, "O_PATH") and os.path.isdir(_DESCRIPTORS)


def path_of(descriptor: int) -> str:
    """Return the real path of an open file, "" where the system does not tell it."""
    try:
        return os.readlink(f"{_DESCRIPTORS}/{descriptor}").removesuffix(_DELETED)
    except OSError:
        return ""


def path_to(descriptor: int) -> Path:
    """Return a path that leads to an open file; see ``has_paths``."""
    return Path(_DESCRIPTORS, str(descriptor))


def open_below(
    directory: int,
    names: Iterable[str],
    *,
    create: bool = True,
    created: Callable[[int], None] = lambda descriptor: None,
) -> int:
    """Open a directory below an open one.

    Args:
        directory: Descriptor of the open directory.
        names: The names on the way; none of them may be a link.
        create: Whether to create the directories that are missing.
        created: Receives the descriptor of each new directory.

    Returns:
        A descriptor for the caller to close.

    Raises:
        OSError: A name is a link or a file, or its directory cannot be changed.
    """
    current = os.dup(directory)
    try:
        for name in names:
            is_new = create and _make(name, current)
            inner = os.open(name, SEARCH | NO_LINK, dir_fd=current)
            os.close(current)
            current = inner
            if is_new:
                created(current)
    except BaseException:
        os.close(current)
        raise
    return current


def _make(name: str, directory: int) -> bool:
    """Create a directory if there is none; return whether there was none."""
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)
        return True
    return False


@contextmanager
def held_parent(root: Path, path: str) -> Iterator[Path]:
    """Yield a path that leads to an entry below a directory, through no links.

    Raises OSError if its directory is missing, or if there is a link on the way.
    """
    if not has_paths():
        yield root / path
        return
    *folders, name = PurePath(path).parts
    top = os.open(root, SEARCH)
    try:
        directory = open_below(top, folders, create=False)
    finally:
        os.close(top)
    try:
        yield path_to(directory) / name
    finally:
        os.close(directory)


@contextmanager
def _regular(path: str | Path, flags: int = 0) -> Iterator[IO[bytes]]:
    """Open a regular file; raise OSError for anything else, such as a pipe, which would block."""
    flags |= os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file", str(path))
        yield file


def read_regular(path: str | Path, max_bytes: int) -> bytes:
    """Read a regular file; raise OSError for anything else, and for a larger one."""
    with _regular(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


def read_real(path: Path) -> bytes:
    """Read a regular file by its real path; raise OSError if the path has become a link's."""
    with _regular(path, NO_LINK) as file:
        real = path_of(file.fileno())
        if real and real != os.fspath(path):
            raise OSError(errno.ELOOP, f"It leads to {real} now", str(path))
        return file.read()


def content_at(path: Path) -> bytes | None:
    """Return the content of a file by its real path, or the target of a link, as git stores them.

    Returns None for a missing path; raises OSError for anything else.
    """
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            return os.fsencode(os.readlink(path))
        return read_real(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def change_mode(path: Path, mode: int) -> None:
    """Set the permissions of a file or directory; raise OSError for a link."""
    if not has_paths():
        os.chmod(path, mode)
        return
    descriptor = os.open(path, os.O_PATH | NO_LINK)
    try:
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        os.chmod(path_to(descriptor), mode)
    finally:
        os.close(descriptor)


def nearest_directory(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the innermost existing directory of a path, and the names that are missing."""
    parent = path
    while not parent.is_dir() and parent != parent.parent:
        parent = parent.parent
    return parent, path.relative_to(parent).parts
