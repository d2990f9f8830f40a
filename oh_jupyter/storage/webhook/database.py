"""The SQLite database of an outbox: opened when needed, once in each process.

With a file, a change is safe from the death of the process as soon as it is recorded
(write-ahead log; a loss of power can take the last moments, never the database). Without
one, the database is SQLite's own temporary file, which keeps what waits out of memory.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from typing import TYPE_CHECKING, Any

from oh_jupyter.errors import StoreConfigError
from oh_jupyter.storage.webhook.sender_lock import process_mark, turn

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Database", "outbox_file"]

_SUFFIXES = (".sqlite3", ".sqlite", ".db")
_BUSY_SECONDS = 30.0
_LOG_PAGES = 16384  # 64 MiB, if nobody has tidied up before
_LOG_BYTES = 4 << 20
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
    """A connection that all threads of a process share.

    Args:
        path: The file; None for a temporary database of this process.

    Attributes:
        lock: To be held while the connection is used.
        owner: Who records through it: this process, and no later one.
        name: Part of the ids of what is recorded; another one for each database.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._inherited: list[Any] = []
        self._connection: sqlite3.Connection | None = None
        self.lock = threading.RLock()
        self.owner = self.name = ""
        if path is not None:
            self.connection  # noqa: B018  a place that cannot be shall be known at once

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, each statement a transaction of its own."""
        if self._connection is None:
            with self.lock:
                if self._connection is None:
                    self._connection = self._open()
        return self._connection

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child, which must not touch its parent's connection."""
        self._inherited.append(self._connection)  # closing it would break the parent's locks
        self._connection = None
        self.lock = threading.RLock()
        self.owner = ""

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def tidy(self, everything: bool) -> None:
        """Move a long write-ahead log into the database, without holding up a writer.

        Args:
            everything: Also a short one, and make the file of the log empty.
        """
        import sqlite3

        if self.path is None:
            return
        try:
            if not everything and os.path.getsize(self.path + "-wal") < _LOG_BYTES:
                return
            with contextlib.closing(sqlite3.connect(self.path)) as connection:
                how = "TRUNCATE" if everything else "PASSIVE"
                connection.execute(f"PRAGMA wal_checkpoint({how})")
        except (OSError, sqlite3.Error):
            return  # the next time will do

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        try:
            if self.path is None:
                connection, name = self._prepared("")
            else:
                os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
                # Contents of files are in it, and not everybody may read those.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                with turn(self.path + "-open"):
                    connection, name = self._prepared(self.path)
        except (sqlite3.Error, OSError) as error:
            raise StoreConfigError(
                f"The outbox {self.path!r} cannot be opened: {error}; "
                "name a directory that can be written, or a file that SQLite made."
            ) from error
        self.name = name
        self.owner = self.owner or f"{process_mark()}#{uuid.uuid4().hex[:8]}"
        return connection

    def _prepared(self, path: str) -> tuple[sqlite3.Connection, str]:
        import sqlite3

        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute(f"PRAGMA journal_mode={'WAL' if path else 'MEMORY'}")
            connection.execute(f"PRAGMA synchronous={'NORMAL' if path else 'OFF'}")
            # Moving the log into the database waits for the disk: the thread does that.
            connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
            connection.executescript(_SCHEMA)
            row = connection.execute("SELECT name FROM name").fetchone()
            if row is None:
                row = (uuid.uuid4().hex[:16],)
                connection.execute("INSERT INTO name VALUES(?)", row)
        except BaseException:
            connection.close()
            raise
        return connection, row[0]


def outbox_file(place: str | os.PathLike[str]) -> str:
    """Find the database of an outbox.

    Args:
        place: A directory, or the file itself (``.sqlite3``, ``.sqlite``, ``.db``, or any
            file that is there).

    Returns:
        The absolute path of the file.
    """
    path = os.path.realpath(os.path.expanduser(os.fspath(place)))
    if os.path.isfile(path) or (not os.path.isdir(path) and path.endswith(_SUFFIXES)):
        return path
    return os.path.join(path, "outbox.sqlite3")
