"""Exclusive lock of a file for all editors, and savers, of a user on one machine.

While an editor holds one, the lock file names its history; if it dies in a change, that stays, so
that whoever comes next knows which history to ask. Other users and machines are not excluded.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oh_jupyter.locks import file_lock

if sys.platform == "win32":
    import tempfile

    _ROOTS: tuple[str, ...] = (os.environ.get("LOCALAPPDATA") or tempfile.gettempdir(),)

    def _user() -> int:
        return 0  # the root is this user's alone, and nothing there names an owner
else:
    _ROOTS = ("/var/tmp", "/tmp")  # the first outlives a restart of the machine

    def _user() -> int:
        return os.geteuid()


_UNUSABLE_ERRNOS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ELOOP,
)
_MAX_RECORD_BYTES = 16384  # two paths of the greatest length


@dataclass(frozen=True)
class LockHolder:
    """Identity of an editor that changes a file."""

    folder: str
    path: str

    @classmethod
    def parse(cls, record: bytes) -> LockHolder | None:
        """Holder named in a lock file; None for nothing, or what a power failure left of it."""
        folder, separator, path = record.partition(b"\0")
        return cls(os.fsdecode(folder), os.fsdecode(path)) if separator else None

    @property
    def record(self) -> bytes:
        """Content of the lock file."""
        return os.fsencode(self.folder) + b"\0" + os.fsencode(self.path)

    @property
    def is_in_the_middle(self) -> bool:
        """Whether it wrote its intent and has not yet committed it."""
        return os.path.exists(os.path.join(self.folder, "intent.json"))


class InterruptedEdit(Exception):
    """An editor with another history died while it changed a file."""

    def __init__(self, holder: LockHolder) -> None:
        super().__init__(holder)
        self.holder = holder


@contextmanager
def held_by_saver(path: str, timeout_seconds: float) -> Iterator[None]:
    """Hold the lock of a real path without a history, where it can be had in time.

    Who saves what a person has typed must not fail by an editor that is suspended or has died.
    """
    holder = LockHolder(os.devnull, path)
    with ExitStack() as stack:
        with suppress(InterruptedEdit, OSError):  # TimeoutError is one
            stack.enter_context(held([holder], lambda _: False, timeout_seconds))
        yield


@contextmanager
def held(
    holders: Sequence[LockHolder],
    is_known: Callable[[LockHolder], bool],
    timeout_seconds: float | None = None,
) -> Iterator[None]:
    """Hold the locks of files; raises InterruptedEdit for a lock whose holder died.

    Each is waited for at most ``timeout_seconds``, then it is a TimeoutError.
    """
    place = _lock_folder()
    if place is None:
        yield
        return
    with ExitStack() as stack:
        # Everybody takes locks in the same order, so no two ever wait for each other.
        for name_of in (lock_name, _inode_name):
            named = {name: holder for holder in holders if (name := name_of(holder.path))}
            for name in sorted(named):
                file = os.path.join(place, name)
                stack.enter_context(_held(file, named[name], is_known, timeout_seconds))
        yield


@contextmanager
def _held(
    file: str,
    holder: LockHolder,
    is_known: Callable[[LockHolder], bool],
    timeout_seconds: float | None,
) -> Iterator[None]:
    with file_lock(file, timeout_seconds) as descriptor:
        before = LockHolder.parse(os.read(descriptor, _MAX_RECORD_BYTES))
        if before is not None and before != holder:
            if before.is_in_the_middle and not is_known(before):
                raise InterruptedEdit(before)
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
        if before != holder:
            os.write(descriptor, holder.record)
        try:
            yield
        finally:
            if not holder.is_in_the_middle:
                _remove(file, descriptor)


def _remove(file: str, descriptor: int) -> None:
    try:
        os.unlink(file)
    except OSError:  # where a file that is open cannot be removed, it stays
        with suppress(OSError):
            os.ftruncate(descriptor, 0)


def find_interrupted(path: Path) -> LockHolder | None:
    """Editor that died while it changed a file, if any; creates nothing and does not wait."""
    # Mostly there is no lock at all, and no need to follow links to a file.
    places = [place for place in lock_folders() if _has_locks(place) and is_private(place)]
    if not places:
        return None
    real = os.path.realpath(path)
    names = [name for name in (lock_name(real), _inode_name(real)) if name]
    found = (_died_with(os.path.join(place, name)) for place in places for name in names)
    return next(filter(None, found), None)


def _has_locks(place: str) -> bool:
    try:
        with os.scandir(place) as entries:
            return any(entries)
    except OSError:
        return False


def _died_with(file: str) -> LockHolder | None:
    try:
        with open(file, "rb", buffering=0) as stream:
            holder = LockHolder.parse(stream.read(_MAX_RECORD_BYTES))
        if holder is not None and holder.is_in_the_middle:
            with file_lock(file, timeout_seconds=0) as descriptor:
                if LockHolder.parse(os.read(descriptor, _MAX_RECORD_BYTES)) == holder:
                    return holder
                _remove(file, descriptor)  # it is over by now
    except OSError:
        pass  # there is no lock, or its holder lives
    return None


def lock_name(path: str) -> str:
    """Name of the lock file of a real path."""
    return hashlib.sha256(os.fsencode(os.path.normcase(path))).hexdigest()[:32]


def _inode_name(path: str) -> str:
    """Name the lock that the hard links of a file share; "" for a file with one name."""
    try:
        info = os.stat(path)
    except OSError:
        return ""
    is_linked = stat.S_ISREG(info.st_mode) and info.st_nlink > 1
    return f"inode_{info.st_dev}_{info.st_ino}" if is_linked else ""


def lock_folders() -> list[str]:
    """Folders of the locks, the first of which that is private is used."""
    return [os.path.join(root, f"oh_jupyter_locks_{_user()}") for root in _ROOTS]


def _lock_folder() -> str | None:
    """Find the folder of the locks; None if there is none that only this user can write."""
    for place in lock_folders():
        if is_private(place):
            return place
        try:
            os.mkdir(place, 0o700)
        except OSError as error:
            if error.errno not in _UNUSABLE_ERRNOS:
                raise
        if is_private(place):
            return place
    _warn()
    return None


def is_private(place: str) -> bool:
    """Whether nobody else can have put a file there, or a link, and we can."""
    try:
        info = os.lstat(place)
    except OSError:
        return False
    if not stat.S_ISDIR(info.st_mode) or not os.access(place, os.W_OK):
        return False
    return sys.platform == "win32" or (info.st_uid == _user() and not info.st_mode & 0o022)


@cache
def _warn() -> None:
    logging.getLogger(__name__).warning(
        "There is no folder for the locks of files (%s): editors of different workspaces do not "
        "wait for each other, and may lose edits that they make to one file at the same time.",
        ", ".join(lock_folders()),
    )
