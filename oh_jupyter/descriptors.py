"""Open files, which stay the same whatever becomes of their paths.

A process of an agent can replace a directory by a link between two calls that name it. What is
opened once, component by component and without links, cannot be redirected. Linux also tells the
path of what is open, and leads to it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

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
    directory: int, names: Iterable[str], created: Callable[[int], None] = lambda descriptor: None
) -> int:
    """Open a directory below an open one, and create what is missing of its path.

    Args:
        directory: Descriptor of the open directory.
        names: The names on the way; none of them may be a link.
        created: Receives the descriptor of each new directory.

    Returns:
        A descriptor for the caller to close.

    Raises:
        OSError: A name is a link or a file, or its directory cannot be changed.
    """
    current = os.dup(directory)
    try:
        for name in names:
            is_new = False
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=current)
                is_new = True
            inner = os.open(name, SEARCH | NO_LINK, dir_fd=current)
            os.close(current)
            current = inner
            if is_new:
                created(current)
    except BaseException:
        os.close(current)
        raise
    return current


def nearest_directory(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the innermost existing directory of a path, and the names that are missing."""
    parent = path
    while not parent.is_dir() and parent != parent.parent:
        parent = parent.parent
    return parent, path.relative_to(parent).parts
