"""Exclusive lock of a file among all editors and saves of a user on one machine.

The lock file names the history of the editor that holds it. If the editor dies during a change,
the name remains, so that the next one can finish the change from that history.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from oh_jupyter.exclusion import exclusive
from oh_jupyter.locks import read_record
from oh_jupyter.private_folder import candidates, first_private, is_private


@dataclass(frozen=True)
class LockHolder:
    """An editor that changes a file: the folder of its ledger, its history there, and the path."""

    folder: str
    history: str
    path: str

    @classmethod
    def parse(cls, record: bytes) -> LockHolder | None:
        """Read the holder from a lock file; None if it is empty or damaged."""
        parts = record.split(b"\0")
        return cls(*map(os.fsdecode, parts)) if len(parts) == len(fields(cls)) else None

    @property
    def record(self) -> bytes:
        """The content of the lock file."""
        return b"\0".join(map(os.fsencode, (self.folder, self.history, self.path)))


class InterruptedEdit(Exception):
    """An editor with another history died during a change."""

    def __init__(self, holder: LockHolder) -> None:
        super().__init__(holder)
        self.holder = holder


@contextmanager
def held_by_saver(path: str, timeout_seconds: float) -> Iterator[None]:
    """Hold the lock of a real path for a save, or go ahead without it after the timeout.

    A suspended or dead editor must not prevent saving a person's work.
    """
    holder = LockHolder(os.devnull, "", path)
    with ExitStack() as stack:
        with suppress(InterruptedEdit, OSError):  # TimeoutError is one
            stack.enter_context(held([holder], timeout_seconds=timeout_seconds))
        yield


@contextmanager
def held(
    holders: Sequence[LockHolder],
    *,
    is_known: Callable[[LockHolder], bool] = lambda _: False,
    is_unfinished: Callable[[str], bool] = lambda _: False,
    timeout_seconds: float | None = None,
) -> Iterator[None]:
    """Hold the locks of files.

    Args:
        holders: Who changes which files.
        is_known: Whether a dead holder is no reason to stop.
        is_unfinished: Whether the change of a path is neither done nor reverted at the end, so
            that its holder stays named.
        timeout_seconds: Maximum time for each lock; None for no limit.

    Raises:
        InterruptedEdit: The last holder of a lock died.
        TimeoutError: Others held a lock until the timeout.
    """
    folder = _lock_folder()
    if folder is None:
        yield
        return
    with ExitStack() as stack:
        # The same order everywhere, so that no two editors wait for each other.
        for name_of in (lock_name, _inode_name):
            named = {name: holder for holder in holders if (name := name_of(holder.path))}
            for name in sorted(named):
                resource = os.path.join(folder, name)
                lock = _held(resource, named[name], is_known, is_unfinished, timeout_seconds)
                stack.enter_context(lock)
        yield


@contextmanager
def _held(
    resource: str,
    holder: LockHolder,
    is_known: Callable[[LockHolder], bool],
    is_unfinished: Callable[[str], bool],
    timeout_seconds: float | None,
) -> Iterator[None]:
    with exclusive(resource, timeout_seconds) as exclusion:
        exclusion.is_kept = True
        before = LockHolder.parse(exclusion.record)
        if before != holder:
            if before is not None and before.folder != os.devnull and not is_known(before):
                raise InterruptedEdit(before)
            exclusion.write(holder.record)
        try:
            yield
        finally:
            exclusion.is_kept = is_unfinished(holder.path)


def find_interrupted(path: Path) -> LockHolder | None:
    """Find the editor that died while it changed a file, without waiting for a lock."""
    # Usually no lock exists, and resolving links is unnecessary.
    folders = [folder for folder in lock_folders() if _has_locks(folder) and is_private(folder)]
    if not folders:
        return None
    real = os.path.realpath(path)
    names = [name for name in (lock_name(real), _inode_name(real)) if name]
    holders = (_dead_holder(os.path.join(folder, name)) for folder in folders for name in names)
    return next(filter(None, holders), None)


def _has_locks(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entries)
    except OSError:
        return False


def _dead_holder(resource: str) -> LockHolder | None:
    try:
        holder = LockHolder.parse(read_record(resource))
        if holder is not None and holder.folder != os.devnull:
            with exclusive(resource, timeout_seconds=0) as exclusion:
                if LockHolder.parse(exclusion.record) == holder:  # nobody has finished it meanwhile
                    return holder
    except OSError:
        pass  # no lock, or its holder is alive
    return None


def lock_name(path: str) -> str:
    """Return the name that stands for a real path in the folder of the locks."""
    return hashlib.sha256(os.fsencode(os.path.normcase(path))).hexdigest()[:32]


def _inode_name(path: str) -> str:
    """Return the name of the lock that the hard links of a file share; "" for a single name."""
    try:
        info = os.stat(path)
    except OSError:
        return ""
    is_linked = stat.S_ISREG(info.st_mode) and info.st_nlink > 1
    return f"inode_{info.st_dev}_{info.st_ino}" if is_linked else ""


def lock_folders() -> list[str]:
    """Return the candidates for the folder of the locks; the first private one is used."""
    return candidates("oh_jupyter_locks_")


def _lock_folder() -> str | None:
    """Return the folder of the locks; None if no candidate is private."""
    folder = first_private(lock_folders())
    if folder is None:
        _warn()
    return folder


@cache
def _warn() -> None:
    logging.getLogger(__name__).warning(
        "No private folder for file locks is available (%s): editors of different workspaces do "
        "not wait for each other, and simultaneous edits of one file may be lost.",
        ", ".join(lock_folders()),
    )
