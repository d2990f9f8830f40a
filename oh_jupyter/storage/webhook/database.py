"""SQLite database of an outbox, opened on demand, and the locks of the processes that share it.

A file survives the death of the process; a power loss can lose the last moments.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from oh_jupyter.errors import StoreConfigError
from oh_jupyter.locks import file_lock, is_locked_file

OUTBOX_ERRORS = (sqlite3.Error, OSError)
"""Errors of an outbox whose disk is full or missing."""

_log = logging.getLogger(__name__)
_CLOCK_SECONDS = 2.0
_STOPPED_SECONDS = 3.0  # until another process takes over from one that is stopped
_SUFFIXES = (".sqlite3", ".sqlite", ".db")
_BUSY_TIMEOUT_SECONDS = 30.0
_MAX_LOG_PAGES = 16384  # 64 MiB, if no earlier checkpoint runs
_CHECKPOINT_BYTES = 4 << 20
_CHECKPOINT_SECONDS = 0.1
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
    """A connection shared by all threads of a process; without a path, to a temporary file.

    Attributes:
        lock: Guards the connection.
        name: Unique name of the database.
        owner: Identity of this process as the owner of the changes that it applies.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._inherited: list[sqlite3.Connection | None] = []
        self._connection: sqlite3.Connection | None = None
        self.lock = threading.RLock()
        self.owner = self.name = ""
        if path is not None:
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
        """Close the connection; the next use reopens it, or creates a new temporary file."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
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

    def maintain(self) -> None:
        """Move a long write-ahead log into the database, and reserve space for a full disk."""
        if self.path is None:
            return
        self._reserve_space()
        with contextlib.suppress(*OUTBOX_ERRORS):  # retried later
            if os.path.getsize(f"{self.path}-wal") >= _CHECKPOINT_BYTES:
                # On a connection of its own, so that writers do not wait for it.
                connection = sqlite3.connect(self.path, timeout=_CHECKPOINT_SECONDS)
                with contextlib.closing(connection):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def free_space(self) -> None:
        """Delete the reserve on a full disk, so that delivered changes can be deleted."""
        if self.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._reserve)

    @property
    def _reserve(self) -> str:
        return f"{self.path}-reserve"

    def _reserve_space(self) -> None:
        if not os.path.exists(self._reserve):
            try:
                with open(self._reserve, "wb") as file:
                    file.write(bytes(_RESERVE_BYTES))
            except OSError:
                self.free_space()

    def _open(self) -> sqlite3.Connection:
        try:
            if self.path is None:
                connection, self.name = _connect(
                    "", "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"
                )
            else:
                os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
                # It contains files' contents, so only the owner may read it.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                with file_lock(self.path + "-open"):
                    connection, self.name = _connect(
                        self.path, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                    )
                self._reserve_space()
        except OUTBOX_ERRORS as error:
            raise StoreConfigError(
                f"The outbox {self.path!r} cannot be opened: {error}; "
                "name a writable directory, or an existing SQLite file."
            ) from error
        self.owner = self.owner or f"{_process_identity()}#{uuid.uuid4().hex[:8]}"
        return connection


def _connect(path: str, pragmas: str) -> tuple[sqlite3.Connection, str]:
    """Return a connection, and the database's name."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.executescript(pragmas)
        # A checkpoint waits for the disk, so the sending thread runs it instead.
        connection.execute(f"PRAGMA wal_autocheckpoint={_MAX_LOG_PAGES}")
        connection.execute("PRAGMA secure_delete=FAST")  # deletions must not fill the disk
        connection.executescript(_SCHEMA)
        connection.execute(
            "INSERT INTO name SELECT ? WHERE NOT EXISTS (SELECT 1 FROM name)",
            (uuid.uuid4().hex[:16],),
        )
        return connection, connection.execute("SELECT name FROM name").fetchone()[0]
    except BaseException:
        connection.close()
        raise


class SenderLock:
    """Lock of the process that sends; without a path there is only one.

    The system releases it when the process ends. From a process that is stopped, by SIGSTOP or a
    debugger, another one takes it over: it replaces the file, which the first one notices.
    """

    def __init__(self, outbox: str | None) -> None:
        self._path = None if outbox is None else outbox + "-turn"
        self._holding = contextlib.ExitStack()
        self._descriptor: int | None = None

    @property
    def is_lost(self) -> bool:
        """Whether another process took the lock over."""
        if self._path is None or self._descriptor is None:
            return False
        return not is_locked_file(self._path, self._descriptor)

    def acquire(self, timeout_seconds: float | None) -> None:
        """Wait until no other process sends; raise TimeoutError after the timeout."""
        if self.is_lost:
            self.release()
        if self._path is None or self._descriptor is not None:
            return
        deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
        while self._descriptor is None:
            remaining = max(deadline - time.monotonic(), 0)
            try:
                lock = file_lock(self._path, min(remaining, _STOPPED_SECONDS))
                self._descriptor = self._holding.enter_context(lock)
            except TimeoutError:
                if not self._take_over(self._path) and remaining <= _STOPPED_SECONDS:
                    raise
        # On a full disk, sending continues, and nobody can take over.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, _process_identity().encode(), 0)

    def release(self) -> None:
        """Release the lock."""
        self._descriptor = None
        self._holding.close()

    def _take_over(self, path: str) -> bool:
        """Remove the lock file if its holder is stopped; return whether it is."""
        with file_lock(path + "-over"):
            try:
                holder = Path(path).read_text("ascii")
            except OSError:
                return False
            if not is_stopped(holder):
                return False
            os.unlink(path)
        _log.warning(
            "Process %s, which sends the webhooks of this store, is stopped; process %s sends "
            "them now",
            holder.partition("@")[0],
            os.getpid(),
        )
        return True


def outbox_file(outbox: str | os.PathLike[str]) -> str:
    """Return the absolute path of the database, from that of its directory or file."""
    path = os.path.realpath(os.path.expanduser(os.fspath(outbox)))
    if os.path.isfile(path) or (not os.path.isdir(path) and path.endswith(_SUFFIXES)):
        return path
    return os.path.join(path, "outbox.sqlite3")


def _process_identity() -> str:
    """Return a unique identity of this process, from its id and start time."""
    return f"{os.getpid()}@{psutil.Process().create_time():.2f}"


def is_alive(owner: str) -> bool:
    """Return whether the process of an owner exists."""
    return _status(owner) not in (None, psutil.STATUS_ZOMBIE)


def is_stopped(owner: str) -> bool:
    """Return whether the process of an owner exists and does not run until it is resumed."""
    return _status(owner) in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)


def _status(owner: str) -> str | None:
    """Return the status of the process of an owner, or None if it has ended."""
    pid, _, started = owner.partition("#")[0].partition("@")
    try:
        process = psutil.Process(int(pid))
        # A clock adjustment shifts the reported start time.
        is_same = abs(process.create_time() - float(started)) < _CLOCK_SECONDS
        return str(process.status()) if is_same else None
    except (psutil.Error, ValueError):
        return None
