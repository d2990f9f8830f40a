"""SQLite database of an outbox, opened on demand, and its directory of large contents.

A file survives the death of the process; a power loss can lose the last moments.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Collection, Iterable
from typing import IO, TYPE_CHECKING, Any

from oh_jupyter.errors import StoreConfigError
from oh_jupyter.locks import file_lock
from oh_jupyter.storage.webhook.changes import Change

if TYPE_CHECKING:
    import sqlite3

IN_MEMORY = ":memory:"
"""Path of a database in memory."""

_CLOCK_SECONDS = 2.0
_ORPHAN_SECONDS = 3600.0
_SUFFIXES = (".sqlite3", ".sqlite", ".db")
_BUSY_TIMEOUT_SECONDS = 30.0
_MAX_LOG_PAGES = 16384  # 64 MiB, if no earlier checkpoint runs
_CHECKPOINT_BYTES = 4 << 20
_CHECKPOINT_SECONDS = 0.1
_FREE_INTERVAL_SECONDS = 1.0
_RESERVE_BYTES = 128 << 10
_SCHEMA = """
CREATE TABLE IF NOT EXISTS name(name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS changes(
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT, method TEXT NOT NULL, path TEXT NOT NULL, key TEXT NOT NULL,
    size INTEGER NOT NULL, recorded REAL NOT NULL, id TEXT, batch TEXT,
    tries INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
    rounds INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0, reason TEXT,
    contents BLOB, file TEXT);
CREATE TABLE IF NOT EXISTS dead(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
    key TEXT NOT NULL, size INTEGER NOT NULL, recorded REAL NOT NULL,
    attempts INTEGER NOT NULL, reason TEXT NOT NULL, superseded INTEGER NOT NULL DEFAULT 0,
    contents BLOB, file TEXT);
"""


class Database:
    """A connection shared by all threads of a process, guarded by its lock."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._is_file = path not in (None, IN_MEMORY)
        self._inherited: list[Any] = []
        self._connection: sqlite3.Connection | None = None
        self.lock = threading.RLock()
        self.owner = self.name = ""
        self._freed_at = -math.inf
        if self._is_file:
            self.connection  # noqa: B018  reports an unusable path at once

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, in autocommit mode."""
        if self._connection is None:
            with self.lock:
                if self._connection is None:
                    self._connection = self._open()
        return self._connection

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child, which must not use its parent's connection."""
        self._inherited.append(self._connection)  # closing it would break the parent's locks
        self._connection = None
        self.lock = threading.RLock()
        self.owner = ""

    def close(self) -> None:
        """Close the connection; the next use reopens it."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextlib.contextmanager
    def transaction(self) -> Any:
        """Run the block as one transaction."""
        with self.lock:
            connection = self.connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def checkpoint(self) -> None:
        """Move a long write-ahead log into the database, without blocking writers."""
        with contextlib.suppress(OSError):
            if self._is_file and os.path.getsize(f"{self.path}-wal") >= _CHECKPOINT_BYTES:
                self._checkpoint("PASSIVE")

    def reserve_space(self) -> None:
        """Allocate a file that `free_space` can delete when the disk is full."""
        if not self._is_file or os.path.exists(self._reserve):
            return
        try:
            with open(self._reserve, "xb") as file:
                file.write(bytes(_RESERVE_BYTES))
        except FileExistsError:
            return
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(self._reserve)

    def free_space(self) -> None:
        """Delete the reserve and truncate the write-ahead log, to free space on a full disk."""
        if not self._is_file or time.monotonic() < self._freed_at + _FREE_INTERVAL_SECONDS:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._reserve)
        self._checkpoint("TRUNCATE")
        self._freed_at = time.monotonic()

    @property
    def _reserve(self) -> str:
        return f"{self.path}-reserve"

    def _checkpoint(self, mode: str) -> None:
        import sqlite3

        with (
            contextlib.suppress(OSError, sqlite3.Error),  # retried later
            contextlib.closing(
                sqlite3.connect(str(self.path), timeout=_CHECKPOINT_SECONDS)
            ) as connection,
        ):
            connection.execute(f"PRAGMA wal_checkpoint({mode})")

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        try:
            if not self._is_file:
                connection, name = _connect(self.path or "")
            else:
                path = str(self.path)
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                # It contains files' contents, so only the owner may read it.
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
                with file_lock(path + "-open"):
                    connection, name = _connect(path)
        except (sqlite3.Error, OSError) as error:
            raise StoreConfigError(
                f"The outbox {self.path!r} cannot be opened: {error}; "
                "name a writable directory, or an existing SQLite file."
            ) from error
        self.name = name
        self.owner = self.owner or f"{process_identity()}#{uuid.uuid4().hex[:8]}"
        return connection


def _connect(path: str) -> tuple[sqlite3.Connection, str]:
    import sqlite3

    is_file = path not in ("", IN_MEMORY)
    connection = sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute(f"PRAGMA journal_mode={'WAL' if is_file else 'MEMORY'}")
        connection.execute(f"PRAGMA synchronous={'NORMAL' if is_file else 'OFF'}")
        # A checkpoint waits for the disk, so the sending thread runs it instead.
        connection.execute(f"PRAGMA wal_autocheckpoint={_MAX_LOG_PAGES}")
        connection.executescript(_SCHEMA)
        row = connection.execute("SELECT name FROM name").fetchone()
        if row is None:
            row = (uuid.uuid4().hex[:16],)
            connection.execute("INSERT INTO name VALUES(?)", row)
    except BaseException:
        connection.close()
        raise
    return connection, row[0]


def outbox_file(outbox: str | os.PathLike[str]) -> str:
    """Return the absolute path of the database, from that of its directory or file."""
    path = os.path.realpath(os.path.expanduser(os.fspath(outbox)))
    if os.path.isfile(path) or (not os.path.isdir(path) and path.endswith(_SUFFIXES)):
        return path
    return os.path.join(path, "outbox.sqlite3")


class PayloadDirectory:
    """Directory of large contents, one file each; without an outbox it is temporary."""

    def __init__(self, outbox: str | None) -> None:
        self._directory = None if outbox is None else outbox + "-bodies"
        self._is_temporary = outbox is None
        self._pid = os.getpid()

    def store(self, change: Change) -> tuple[str, int]:
        """Copy the contents of a change; return the name and size of the copy."""
        name = uuid.uuid4().hex
        path = os.path.join(self._existing(), name)
        try:
            if change.source is not None:
                shutil.copyfile(change.source, path)
            else:
                with open(path, "xb") as file:
                    file.write(change.contents)
        except BaseException:
            self.delete([name])
            raise
        return name, os.path.getsize(path)

    def open(self, name: str) -> IO[bytes] | None:
        """Open a copy; return None if it is gone."""
        try:
            return open(self.path(name), "rb")
        except FileNotFoundError:
            return None

    def path(self, name: str) -> str:
        """Return the path of a copy."""
        return os.path.join(self._existing(), name)

    def delete(self, names: Iterable[str]) -> None:
        """Delete copies."""
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(self.path(name))

    def close(self) -> None:
        """Delete a temporary directory."""
        if self._is_temporary and self._directory is not None:
            _remove(self._directory, self._pid)
            self._directory = None

    def delete_orphans(self, known: Collection[str]) -> None:
        """Delete old copies left by a killed process, except the known names."""
        if self._is_temporary or self._directory is None or not os.path.isdir(self._directory):
            return
        for entry in os.scandir(self._directory):
            with contextlib.suppress(OSError):
                age = time.time() - entry.stat().st_mtime
                if entry.name not in known and age > _ORPHAN_SECONDS:
                    os.unlink(entry.path)

    def _existing(self) -> str:
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="oh-jupyter-outbox-")
            # Not at exit: its contents may still have to be sent.
            weakref.finalize(self, _remove, self._directory, os.getpid()).atexit = False
            self._pid = os.getpid()
        elif not self._is_temporary:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
        return self._directory


def _remove(directory: str, pid: int) -> None:
    if os.getpid() == pid:  # a forked child shares the files with its parent
        shutil.rmtree(directory, ignore_errors=True)


def process_identity() -> str:
    """Return a unique identity of this process, from its id and start time."""
    import psutil

    return f"{os.getpid()}@{psutil.Process().create_time():.2f}"


def is_active(identity: str) -> bool:
    """Return whether a process exists and is not stopped by a signal."""
    import psutil

    pid, _, started = identity.partition("@")
    try:
        process = psutil.Process(int(pid))
        # A clock adjustment shifts the reported start time.
        is_same = abs(process.create_time() - float(started)) < _CLOCK_SECONDS
        return is_same and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)
    except (psutil.Error, ValueError):
        return False
