"""The files that an agent's Action may use, checked on what was opened.

A path that was judged can lead elsewhere when it is opened, because a process of the agent replaces
a directory or a file by a link meanwhile. So what is open counts: its real path must be allowed.
Linux tells the path of a descriptor; elsewhere, only the judged path counts.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from oh_jupyter.descriptors import (
    SEARCH,
    has_paths,
    nearest_directory,
    open_below,
    path_of,
    path_to,
)


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
def pinned(target: Path, *, is_real: bool = False) -> Iterator[Path]:
    """Yield a path of a file that is to be written, whose directory nobody can replace any more.

    Raises OSError if it is a file that the Action may not change, or if ``is_real`` says that the
    path contained no links, and it does now.
    """
    guard = _guard.get()
    if not has_paths() or (guard is None and not is_real):
        yield target
        return
    directory = os.open(target.parent, SEARCH)
    try:
        if is_real and (real := path_of(directory)) != str(target.parent):
            raise _led_elsewhere(target, real)
        if guard is not None:
            _check_name(guard, directory, (target.name,), target)
        yield path_to(directory) / target.name
    finally:
        os.close(directory)


def make_parents(path: Path) -> list[Path]:
    """Create the missing directories of a file that is to be written; return them, outermost first.

    Raises OSError if it is a file that the Action may not change.
    """
    nearest, names = nearest_directory(path.parent)
    missing = [nearest.joinpath(*names[: count + 1]) for count in range(len(names))]
    guard = _guard.get()
    if not names or guard is None or not has_paths():
        path.parent.mkdir(parents=True, exist_ok=True)
        return missing
    directory = os.open(nearest, SEARCH)
    try:
        _check_name(guard, directory, (*names, path.name), path)
        os.close(open_below(directory, names))
    finally:
        os.close(directory)
    return missing


@contextmanager
def opened_directory(path: str) -> Iterator[int | str]:
    """Yield a directory to list, open where the system can list what is open.

    Raises OSError if it is one that the Action may not read.
    """
    if os.scandir not in os.supports_fd:
        yield path
        return
    guard = _guard.get()
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if guard is not None:
            _check(guard.may_read, descriptor, Path(path))
        yield descriptor
    finally:
        os.close(descriptor)


def _check(may_use: Callable[[str], bool], descriptor: int, path: Path) -> None:
    real = path_of(descriptor)
    if real and not may_use(real):
        raise _led_elsewhere(path, real)


def _check_name(guard: PathGuard, directory: int, names: Sequence[str], path: Path) -> None:
    """Raise OSError unless a file below an open directory may be changed."""
    real = os.path.join(path_of(directory), *names)
    if not guard.may_write(real):
        raise _led_elsewhere(path, real)


def _led_elsewhere(path: Path, real: str) -> OSError:
    return OSError(
        errno.ELOOP,
        f"It leads to {real} now, about which nobody was asked; nothing was done. Use that path",
        str(path),
    )
