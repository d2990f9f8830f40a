"""The files that an agent's Action may use, checked on what was opened.

A path that was judged can lead elsewhere when it is opened, because a process of the agent replaces
a directory or a file by a link meanwhile. So what is open counts: its real path must be allowed.
Linux tells the path of a descriptor; elsewhere, only the judged path counts.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

_DESCRIPTORS = "/proc/self/fd"
_DELETED = " (deleted)"


@dataclass(frozen=True)
class PathGuard:
    """Rules for real paths.

    Attributes:
        may_read: Whether a file may be read.
        may_write: Whether a file may be changed.
    """

    may_read: Callable[[str], bool]
    may_write: Callable[[str], bool]


_guard: ContextVar[PathGuard | None] = ContextVar("path_guard", default=None)


@contextmanager
def guarded_by(guard: PathGuard | None) -> Iterator[None]:
    """Apply rules to the files that the editor opens in this context; None for no rules."""
    token = _guard.set(guard)
    try:
        yield
    finally:
        _guard.reset(token)


def open_guarded(path: Path, flags: int, *, writes: bool = False) -> int:
    """Open a file; raise OSError if it is one that the Action may not use."""
    guard = _guard.get()
    if guard is None:
        return os.open(path, flags)
    # Opening a pipe would wait for its other end.
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        _check(guard.may_write if writes else guard.may_read, descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def pinned(target: Path) -> Iterator[Path]:
    """Yield a path of a file that is to be written, whose directory nobody can replace any more.

    Raises OSError if it is a file that the Action may not change.
    """
    guard = _guard.get()
    if guard is None or not hasattr(os, "O_PATH") or not os.path.isdir(_DESCRIPTORS):
        yield target
        return
    directory = os.open(target.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        real = os.path.join(_path_of(directory), target.name)
        if not guard.may_write(real):
            raise _led_elsewhere(target, real)
        yield Path(_DESCRIPTORS, str(directory), target.name)
    finally:
        os.close(directory)


def _check(may_use: Callable[[str], bool], descriptor: int, path: Path) -> None:
    real = _path_of(descriptor)
    if real and not may_use(real):
        raise _led_elsewhere(path, real)


def _path_of(descriptor: int) -> str:
    """Return the real path of an open file, "" where the system does not tell it."""
    try:
        return os.readlink(f"{_DESCRIPTORS}/{descriptor}").removesuffix(_DELETED)
    except OSError:
        return ""


def _led_elsewhere(path: Path, real: str) -> OSError:
    return OSError(
        errno.ELOOP,
        f"It leads to {real} now, about which nobody was asked; nothing was done. Use that path",
        str(path),
    )
