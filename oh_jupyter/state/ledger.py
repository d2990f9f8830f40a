"""A ledger: an SQLite database that all threads and processes of a user share.

A committed transaction survives the death of the process; unless it is flushed, a power loss can
take the last moments. Readers never wait for writers. A damaged database is moved aside, and a new
one begins: it holds no file's only copy, except for those that wait for an unreachable store.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import re
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from oh_jupyter.errors import LedgerError
from oh_jupyter.exclusion import exclusive
from oh_jupyter.state.tables import TABLES, VERSION

Values = Sequence[Any] | Mapping[str, Any]
"""Parameters of a statement."""

_log = logging.getLogger(__name__)
_BUSY_SECONDS = 30.0
_LOG_BYTES = 4 << 20
_PAGE_BYTES = 4096
_CHECKPOINT_BYTES = 4 << 20
_CHECKPOINT_SECONDS = 0.1
_RESERVE_BYTES = 128 << 10
_MAX_CHECKED_BYTES = 32 << 20  # checking more takes longer than a tenth of a second
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DAMAGED = ".damaged-"
_TABLE_OF_STATEMENT = re.compile(r"TABLE IF NOT EXISTS (\w+)|INDEX IF NOT EXISTS \w+ ON (\w+)")
_MISSING_TABLE = re.compile(r"no such table: (?:main\.)?(\w+)")

_ledgers: weakref.WeakSet[Ledger] = weakref.WeakSet()


class Ledger:
    """A database with the tables of ``tables.py``, opened by the first use.

    Args:
        path: Its file; None for a temporary one, which ends with this object.
        is_replaced: Whether a damaged file is moved aside, and a new one begins.
        log_bytes: Size of the write-ahead log at which a writer moves it into the database,
            waiting for the disk, if ``maintain`` did not do so before.
    """

    def __init__(
        self, path: Path | None, *, is_replaced: bool = True, log_bytes: int = _LOG_BYTES
    ) -> None:
        self.path = path
        self._is_replaced = is_replaced
        self._log_bytes = log_bytes
        self._name = ""
        self._writer, self._reader = _Connection(self), _Connection(self)
        if path is None:
            self._reader = self._writer  # each connection has a temporary file of its own
        self._inherited: list[object] = []
        _ledgers.add(self)

    @property
    def name(self) -> str:
        """Unique name of the database, which it has for as long as it exists."""
        if not self._name:
            with self._writer.errors(), self._writer.lock:
                self._writer.get()
        return self._name

    def exists(self) -> bool:
        """Return whether anything was written."""
        return self.path is None or self.path.exists()

    def rows(self, query: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, none if nothing was ever written.

        Raises:
            LedgerError: The database cannot be read.
        """
        with self._reader.errors(), self._reader.lock:
            if not self._reader.is_usable() and not self.exists():
                return []
            try:
                return sqlite3.Connection.execute(self._reader.get(), query, values).fetchall()
            except sqlite3.OperationalError as error:
                if _MISSING_TABLE.match(str(error)):
                    return []
                raise

    def row(self, query: str, values: Values = ()) -> tuple[Any, ...] | None:
        """Return the first row of a query, or None.

        Raises:
            LedgerError: The database cannot be read.
        """
        return next(iter(self.rows(query, values)), None)

    @contextlib.contextmanager
    def transaction(self, *, is_flushed: bool = False) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction, with the only right to write.

        Compute before: until the block ends, no other thread or process can write. A block within
        a block is part of its transaction; ``rows`` and ``row`` do not see its changes yet.

        Args:
            is_flushed: Whether it survives a power loss, too, which costs a wait for the disk.

        Raises:
            LedgerError: The database cannot be written; nothing of the block was.
        """
        with self._writer.errors(), self._writer.lock:
            connection = self._writer.get()
            if connection.in_transaction:
                yield connection
                return
            if is_flushed:
                connection.execute("PRAGMA synchronous=FULL")
            try:
                with _transaction(connection):
                    yield connection
            finally:
                if is_flushed:
                    connection.execute("PRAGMA synchronous=NORMAL")

    def execute(self, statement: str, values: Values = ()) -> int:
        """Run one statement as a transaction; return the number of changed rows.

        Raises:
            LedgerError: The database cannot be written.
        """
        with self._writer.errors(), self._writer.lock:
            return self._writer.get().execute(statement, values).rowcount

    def insert(self, statement: str, values: Values = ()) -> int:
        """Insert one row as a transaction; return its number.

        Raises:
            LedgerError: The database cannot be written.
        """
        with self._writer.errors(), self._writer.lock:
            number = self._writer.get().execute(statement, values).lastrowid
        assert number is not None
        return number

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        for connection in (self._writer, self._reader):
            with connection.lock:
                connection.close()

    def reset_after_fork(self) -> None:
        """Leave the parent's connections alone; the child opens its own."""
        self._inherited.append((self._writer, self._reader))  # closing breaks the parent's locks
        self._name = ""
        self._writer, self._reader = _Connection(self), _Connection(self)
        if self.path is None:
            self._reader = self._writer

    def maintain(self) -> None:
        """Move a long write-ahead log into the database, and reserve space for a full disk."""
        if self.path is None:
            return
        self._reserve_space()
        with contextlib.suppress(sqlite3.Error, OSError):  # retried later
            if os.path.getsize(f"{self.path}-wal") >= _CHECKPOINT_BYTES:
                # On a connection of its own, so that writers do not wait for it.
                connection = sqlite3.connect(self.path, timeout=_CHECKPOINT_SECONDS)
                with contextlib.closing(connection):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def free_space(self) -> None:
        """Delete the reserve on a full disk, so that rows can be deleted."""
        if self.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._reserve)

    @property
    def _reserve(self) -> str:
        return f"{self.path}-reserve"

    def _reserve_space(self) -> None:
        if not os.path.exists(self._reserve):
            try:
                with open(self._reserve, "wb", opener=_open_private) as file:
                    file.write(bytes(_RESERVE_BYTES))
            except OSError:
                self.free_space()

    def _connect(self) -> sqlite3.Connection:
        if self.path is None:
            connection = _connect(
                "", self._log_bytes, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"
            )
            self._name = _prepare(connection)
            return connection
        os.makedirs(self.path.parent, mode=0o700, exist_ok=True)
        with exclusive(self.path):
            _create_private(self.path)
            try:
                return self._open(self.path)
            except sqlite3.DatabaseError as error:
                if not self._is_replaced or not is_damage(error):
                    raise
                self._move_aside(self.path, error)
            _create_private(self.path)
            return self._open(self.path)

    def _open(self, path: Path) -> sqlite3.Connection:
        connection = _connect(
            str(path), self._log_bytes, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        )
        try:
            is_first = not self._name
            if is_first and os.path.getsize(path) <= _MAX_CHECKED_BYTES:
                _check(connection)
            self._name = _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def replace_damaged(self, error: sqlite3.Error, opened: os.stat_result | None) -> None:
        """Move a damaged database aside, unless another process has replaced it meanwhile."""
        if self.path is None or not self._is_replaced:
            return
        with exclusive(self.path), contextlib.suppress(FileNotFoundError):
            if opened is not None and os.path.samestat(os.stat(self.path), opened):
                self._move_aside(self.path, error)

    def _move_aside(self, path: Path, error: sqlite3.Error) -> None:
        suffix = _DAMAGED + time.strftime("%Y%m%d-%H%M%S")
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{path}{end}", f"{path}{suffix}{end}")
        self._name = ""
        _log.warning(
            "%s was damaged (%s). It is now %s%s, and a new one begins: earlier edits and turns "
            "can no longer be undone, approvals, tokens and trusted settings have to be given "
            "again, files that waited for an unreachable store are only in the damaged one, and "
            "all others stay as they are",
            *(path, error, path.name, suffix),
        )

    def damaged(self) -> list[Path]:
        """Return the databases that were damaged and moved aside, oldest first."""
        if self.path is None:
            return []
        names = self.path.parent.glob(f"{self.path.name}{_DAMAGED}*")
        return sorted(name for name in names if not name.name.endswith(("-wal", "-shm")))


class _Connection:
    """A connection of a ledger that threads share, opened by the first use."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = weakref.ref(ledger)
        self._path = ledger.path
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closing: weakref.finalize[..., _Connection] | None = None
        self._opened: os.stat_result | None = None

    def get(self) -> sqlite3.Connection:
        """Return the connection, to another file if the one that was opened is gone."""
        if self._connection is not None and self.is_usable():
            return self._connection
        self.close()
        ledger = self._ledger()
        assert ledger is not None
        self._connection = ledger._connect()
        # A runtime may be closed after Python's exit handlers.
        self._closing = weakref.finalize(self, _close, self._connection, os.getpid())
        self._closing.atexit = False
        self._opened = None if self._path is None else os.stat(self._path)
        return self._connection

    def is_usable(self) -> bool:
        """Return whether the connection is open, and its file still there."""
        if self._connection is None:
            return False
        if self._path is None or self._opened is None or self._connection.in_transaction:
            return True
        try:
            return os.path.samestat(os.stat(self._path), self._opened)
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Close the connection, if it is open."""
        if self._connection is not None and self._closing is not None:
            self._closing()
            self._connection = None

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the block into a LedgerError."""
        try:
            yield
        except sqlite3.Error as error:
            ledger, opened = self._ledger(), self._opened
            if is_damage(error) and ledger is not None:
                with self.lock:
                    self.close()
                ledger.replace_damaged(error, opened)
            raise _error(self._path, error) from error
        except LedgerError:
            raise
        except OSError as error:
            if self._connection is not None:
                raise  # the block's own
            raise _error(self._path, error) from error


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _close(connection: sqlite3.Connection, process: int) -> None:
    """Close a connection, unless a forked child has inherited it."""
    if process == os.getpid():
        connection.close()


class _LazyConnection(sqlite3.Connection):
    """A connection that makes a table at the first statement that needs it.

    So a small ledger is small, and opening one costs the same however many tables there are.
    """

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        """Execute one statement."""
        return self._with_tables(super().execute, statement, values)

    def executemany(self, statement: str, rows: Any, /) -> sqlite3.Cursor:
        """Execute one statement for each of some rows."""
        return self._with_tables(super().executemany, statement, list(rows))

    def _with_tables(self, execute: Any, statement: str, values: Any) -> sqlite3.Cursor:
        while True:
            try:
                return cast("sqlite3.Cursor", execute(statement, values))
            except sqlite3.OperationalError as error:
                missing = _MISSING_TABLE.match(str(error))
                if missing is None or missing[1] not in statements_by_table():
                    raise
                self._make(missing[1])

    def _make(self, table: str) -> None:
        """Make a table with all of its indexes, or nothing."""
        with contextlib.nullcontext() if self.in_transaction else _transaction(self):
            for statement in statements_by_table()[table]:
                super().execute(statement)


@functools.cache
def statements_by_table() -> dict[str, list[str]]:
    """Return the statements that make each table and its indexes."""
    statements: dict[str, list[str]] = {}
    for statement in TABLES.split(";\n"):
        if match := _TABLE_OF_STATEMENT.search(statement):
            statements.setdefault(match[1] or match[2], []).append(statement)
    return statements


def _connect(path: str, log_bytes: int, pragmas: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=_LazyConnection,
    )
    try:
        connection.executescript(pragmas)
        connection.execute(f"PRAGMA wal_autocheckpoint={log_bytes // _PAGE_BYTES}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=FAST")  # deletions must not fill the disk
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    """Raise DatabaseError if the database is damaged."""
    (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        error = sqlite3.DatabaseError(result)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _prepare(connection: sqlite3.Connection) -> str:
    """Name a new database, and return the name of any."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        with _transaction(connection):
            connection.execute(
                "INSERT INTO identity SELECT ? WHERE NOT EXISTS (SELECT 1 FROM identity)",
                (uuid.uuid4().hex[:16],),
            )
            connection.execute(f"PRAGMA user_version={VERSION}")
    name: str = connection.execute("SELECT name FROM identity").fetchone()[0]
    return name


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error means that a database is damaged, or none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _error(path: Path | None, error: Exception) -> LedgerError:
    where = "a temporary file" if path is None else str(path)
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return LedgerError(
        f"The ledger {where} cannot be read or written: {error}. Free space there or make it "
        "writable, and try again.",
        str(error),
    )


def _create_private(path: Path) -> None:
    """Create a file that only the owner may read, because it contains files' contents.

    An existing one is not opened: closing it would release SQLite's locks of this process, and
    another process would then remove the log that this one uses.
    """
    with contextlib.suppress(FileExistsError):
        os.close(_open_private(str(path), os.O_RDWR | os.O_CREAT | os.O_EXCL))


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _reset_after_fork() -> None:
    for ledger in list(_ledgers):
        ledger.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
