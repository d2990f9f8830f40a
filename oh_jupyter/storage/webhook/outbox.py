"""What a receiver still has to hear of, in the order in which it happened.

A change is recorded before the store is touched, so that nothing can be lost in between,
and is done when the store has done it. Of a process that was killed in between,
everything that it recorded counts as done.

While the disk of the outbox is full, changes are kept in memory, and what became of those
on the disk is remembered until it can be written down.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

from oh_jupyter.storage.webhook.changes import Change
from oh_jupyter.storage.webhook.database import IN_MEMORY, Database
from oh_jupyter.storage.webhook.payloads import LARGE_BYTES, PayloadDirectory
from oh_jupyter.storage.webhook.processes import SenderLock, is_active

__all__ = ["Outbox", "OutboxFullError", "QueuedChange"]

_log = logging.getLogger(__name__)
_MAX_DEAD_LETTERS = 1000
_MAX_OVERFLOW_BYTES = 64 << 20
_COLUMNS = (
    "number,owner,method,path,key,size,recorded,id,batch,tries,attempts,rounds,due,reason,contents"
)
_DEAD_COLUMNS = (
    "number,id,method,path,key,size,recorded,attempts,reason,superseded,contents IS NOT NULL"
)


class OutboxFullError(Exception):
    """A change can be kept neither on the disk nor in memory."""


@dataclass
class QueuedChange:
    """A change that waits, without its contents.

    Attributes:
        number: Its place in the order.
        id: How the receiver knows it.
        method: ``POST`` or ``DELETE``.
        path: As the writer gave it.
        key: The one spelling of it.
        size: Bytes of the contents.
        recorded: When, in seconds since the epoch.
        done: Whether the store has done it.
        batch: Id of the request that it is part of, if it was sent in one before.
        tries: Requests in this round of quick tries.
        attempts: Requests in all.
        rounds: Rounds of quick tries that were in vain.
        due: When to try again, in seconds since the epoch.
        reason: Why it was not accepted.
    """

    number: int
    id: str
    method: str
    path: str
    key: str
    size: int
    recorded: float
    done: bool
    batch: str | None
    tries: int
    attempts: int
    rounds: int
    due: float
    reason: str


class Outbox:
    """The changes that wait, in a database file; a path of None ends with the process."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self.sender_lock = SenderLock(path)
        self._database = Database(path)
        self._payloads = PayloadDirectory(path)
        self._overflow: Database | None = None
        self._overflow_payloads = PayloadDirectory(None)
        self._overflow_lock = threading.Lock()  # held while it comes or goes
        self._number = 0  # of the last change recorded here
        self._unsaved: dict[int, QueuedChange] = {}  # their new state is not written yet
        self._accepted: dict[int, QueuedChange] = {}  # not deleted yet

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._database.reset_after_fork()
        self.sender_lock = SenderLock(self.path)
        self._payloads = PayloadDirectory(self.path)
        self._overflow = None
        self._overflow_payloads = PayloadDirectory(None)
        self._overflow_lock = threading.Lock()
        self._unsaved, self._accepted = {}, {}

    def maintain(self) -> None:
        """Do what can be done later: write down what a full disk did not take, and tidy up."""
        if self._accepted:
            self.accept(list(self._accepted.values()))
        if self._unsaved:
            self.reschedule(list(self._unsaved.values()))
        if self._overflow is not None:
            with self._overflow_lock:
                self._move_overflow(self._overflow)
        self._database.checkpoint()
        self._database.reserve_space()

    def delete_orphans(self) -> None:
        """Delete contents that belong to no change any more."""
        with self._database.lock:
            rows = self._database.connection.execute(
                "SELECT file FROM changes WHERE file IS NOT NULL "
                "UNION SELECT file FROM dead WHERE file IS NOT NULL"
            ).fetchall()
        self._payloads.delete_orphans({row[0] for row in rows})

    def close(self) -> None:
        """Close the database; the next use opens it again, a temporary one empty."""
        if self._overflow is not None:
            return  # what is in memory would be gone
        self._database.close()
        self._payloads.close()

    @property
    def undurable(self) -> int:
        """How many changes wait in memory, since the disk of the outbox is full."""
        if self._overflow is None:
            return 0
        return int(_value(self._overflow, "SELECT count(*) FROM changes"))

    def add(self, change: Change) -> int:
        """Record a change that the store is about to do, and give its number."""
        import sqlite3

        try:
            try:
                return self._insert(self._database, self._payloads, change)
            except (sqlite3.OperationalError, OSError):
                # What is done with may make room.
                self._database.free_space()
                return self._insert(self._database, self._payloads, change)
        except (sqlite3.Error, OSError) as error:
            with self._overflow_lock:
                return self._add_overflow(change, error)

    def _add_overflow(self, change: Change, reason: Exception) -> int:
        if self._overflow is None:
            _log.warning(
                "The outbox cannot keep changes on disk (%s): they are kept in memory until it can",
                reason,
            )
            self._overflow = Database(IN_MEMORY)
        size = int(_value(self._overflow, "SELECT coalesce(sum(size),0) FROM changes"))
        if size + len(change.contents) > _MAX_OVERFLOW_BYTES:
            raise OutboxFullError(str(reason)) from reason
        try:
            return self._insert(self._overflow, self._overflow_payloads, change)
        except OSError as error:
            if change.source is not None:
                raise OutboxFullError(str(error)) from error
            return self._insert(self._overflow, None, change)

    def _insert(self, database: Database, payloads: PayloadDirectory | None, change: Change) -> int:
        file = None
        contents, size = change.contents, len(change.contents)
        if payloads is not None and (change.source is not None or size > LARGE_BYTES):
            # SQLite would have all of it in memory.
            file, size = payloads.store(change)
            contents = b""
        try:
            with database.lock:
                connection = database.connection  # opening it finds out who we are
                # In the order of time, also where it is partly on disk and partly in memory.
                number = max(time.time_ns(), self._number + 1)
                self._number = cast(
                    int,
                    connection.execute(
                        "INSERT INTO changes(number,owner,method,path,key,size,recorded,contents,"
                        "file) VALUES(max(?,coalesce((SELECT max(number) FROM changes),0)+1),"
                        "?,?,?,?,?,?,?,?)",
                        (
                            number,
                            database.owner,
                            change.method,
                            change.path,
                            change.key,
                            size,
                            time.time(),
                            contents,
                            file,
                        ),
                    ).lastrowid,
                )
                return self._number
        except BaseException:
            if payloads is not None and file is not None:
                payloads.delete([file])
            raise

    def _move_overflow(self, overflow: Database) -> None:
        """Take what is kept in memory to the disk, if that has room again."""
        import sqlite3

        with overflow.lock:
            rows = overflow.connection.execute(f"SELECT {_COLUMNS},file FROM changes").fetchall()
            dead = overflow.connection.execute("SELECT * FROM dead").fetchall()
            copies: list[str] = []
            try:
                with self._database.transaction() as connection:
                    for row in rows:
                        values = list(row)
                        values[7] = values[7] or f"{overflow.name}.{row[0]}"
                        if values[1] is not None:
                            values[1] = self._database.owner
                        if row[-1] is not None:
                            source = self._overflow_payloads.path(row[-1])
                            copied = Change("POST", row[3], row[4], source=source)
                            values[-1] = self._payloads.store(copied)[0]
                            copies.append(values[-1])
                        marks = ",".join("?" * len(values))
                        connection.execute(
                            f"INSERT INTO changes({_COLUMNS},file) VALUES({marks})", values
                        )
                    for row in dead:
                        marks = ",".join("?" * len(row))
                        connection.execute(f"INSERT OR REPLACE INTO dead VALUES({marks})", row)
            except (sqlite3.Error, OSError):
                self._payloads.delete(copies)
                return
            overflow.close()
            self._overflow = None
            self._overflow_payloads.close()
        _log.warning("The outbox keeps changes on disk again")

    def add_dead(self, change: Change, reason: str) -> None:
        """Note a change that cannot be kept, so that people can see that it is lost."""
        with self._overflow_lock:
            if self._overflow is None:
                self._overflow = Database(IN_MEMORY)
            self._number = number = max(time.time_ns(), self._number + 1)
            with self._overflow.transaction() as connection:
                id = f"{self._overflow.name}.{number}"
                connection.execute(
                    "INSERT INTO dead(number,id,method,path,key,size,recorded,attempts,reason) "
                    "VALUES(?,?,?,?,?,?,?,0,?)",
                    (
                        number,
                        id,
                        change.method,
                        change.path,
                        change.key,
                        len(change.contents),
                        time.time(),
                        reason,
                    ),
                )

    def mark_done(self, numbers: Iterable[int]) -> None:
        """Note that the store has done these changes."""
        rows = [(number,) for number in numbers]
        self._write(
            lambda connection: connection.executemany(
                "UPDATE changes SET owner=NULL WHERE number=?", rows
            )
        )

    def pending(self) -> list[QueuedChange]:
        """List the changes that wait, the oldest first."""
        found = [change for database in self._databases() for change in _pending_in(database)]
        if self._overflow is not None:
            found.sort(key=lambda change: change.number)
        if self._unsaved or self._accepted:
            found = [
                self._unsaved.get(change.number, change)
                for change in found
                if change.number not in self._accepted
            ]
        return found

    @contextlib.contextmanager
    def payload(self, number: int) -> Iterator[bytes | IO[bytes] | None]:
        """Fetch contents as bytes, or as a file if they are large; None if they are gone."""
        found = self._fetch(number)
        if found is None or isinstance(found, bytes):
            yield found
            return
        with found:
            yield found

    def _fetch(self, number: int) -> bytes | IO[bytes] | None:
        for database in self._databases():
            with database.lock:
                found = database.connection.execute(
                    "SELECT file,contents FROM changes WHERE number=?", (number,)
                ).fetchone()
            if found is not None and found[0] is None:
                return found[1] or b""
            if found is not None:
                return self._payloads_of(database).open(found[0])
        return None

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget changes that nobody has to hear of (any more)."""
        if numbers:
            self._write(lambda connection: _deleted(connection, "changes", numbers))

    def accept(self, changes: Sequence[QueuedChange]) -> None:
        """Forget changes that the receiver has, and the dead letters that they supersede."""
        import sqlite3

        def accept(connection: Any) -> list[str]:
            if connection.execute("SELECT 1 FROM dead WHERE NOT superseded LIMIT 1").fetchone():
                connection.executemany(
                    "UPDATE dead SET superseded=1 WHERE number<? AND (key=? OR "
                    "(?='DELETE' AND (?='' OR substr(key,1,length(?)+1)=?||'/')))",
                    [(c.number, c.key, c.method, c.key, c.key, c.key) for c in changes],
                )
            return _deleted(connection, "changes", [c.number for c in changes])

        self._accepted.update((change.number, change) for change in changes)
        try:
            self._write(accept)
        except sqlite3.Error:
            self._delete_payloads(changes)  # which makes room for the next attempt
            return
        for change in changes:
            self._accepted.pop(change.number, None)
            self._unsaved.pop(change.number, None)

    def reschedule(self, changes: Sequence[QueuedChange]) -> None:
        """Note that changes were tried, in which request, and when they are due again."""
        import sqlite3

        rows = [
            (c.tries, c.attempts, c.rounds, c.due, c.reason, c.batch, c.number) for c in changes
        ]
        self._unsaved.update((change.number, change) for change in changes)
        with contextlib.suppress(sqlite3.Error):
            self._write(
                lambda connection: connection.executemany(
                    "UPDATE changes SET tries=?,attempts=?,rounds=?,due=?,reason=?,batch=? "
                    "WHERE number=?",
                    rows,
                )
            )
            for change in changes:
                self._unsaved.pop(change.number, None)

    def give_up(self, changes: Sequence[QueuedChange], keep_contents: bool = True) -> None:
        """Make dead letters of changes; a thousand are kept."""
        kept = "contents,file" if keep_contents else "NULL,NULL"
        numbers = [change.number for change in changes]

        def give_up(connection: Any) -> list[str]:
            connection.executemany(
                "INSERT OR REPLACE INTO dead(number,id,method,path,key,size,recorded,attempts,"
                f"reason,contents,file) SELECT number,?,method,path,key,size,recorded,?,?,{kept} "
                "FROM changes WHERE number=?",
                [(c.id, c.attempts, c.reason, c.number) for c in changes],
            )
            files = _deleted(connection, "changes", numbers)
            old = connection.execute(
                "SELECT number FROM dead ORDER BY number DESC LIMIT -1 OFFSET ?",
                (_MAX_DEAD_LETTERS,),
            ).fetchall()
            too_many = _deleted(connection, "dead", [row[0] for row in old])
            return too_many if keep_contents else [*files, *too_many]

        self._write(give_up)
        for number in numbers:
            self._unsaved.pop(number, None)

    def totals(self) -> tuple[int, int]:
        """Count the changes that wait, and the bytes of their contents."""
        if self._accepted:
            pending = self.pending()
            return len(pending), sum(change.size for change in pending)
        count = size = 0
        for database in self._databases():
            with database.lock:
                found = database.connection.execute(
                    "SELECT count(*),coalesce(sum(size),0) FROM changes"
                ).fetchone()
            count, size = count + int(found[0]), size + int(found[1])
        return count, size

    def last_number(self) -> int:
        """Number of the newest change that waits; 0 if none does."""
        query = "SELECT coalesce(max(number),0) FROM changes"
        return max(int(_value(database, query)) for database in self._databases())

    def dead_letters(self) -> list[tuple[Any, ...]]:
        """Rows of number, id, method, path, key, size, recorded, attempts, reason, superseded,
        and whether the contents are there; the oldest first.
        """  # noqa: D205
        found: list[tuple[Any, ...]] = []
        for database in self._databases():
            with database.lock:
                found += database.connection.execute(
                    f"SELECT {_DEAD_COLUMNS} FROM dead ORDER BY number"
                ).fetchall()
        return sorted(found)

    def requeue(self, numbers: Sequence[int]) -> None:
        """Let dead letters wait again, at the end and under the same id."""
        last = max(time.time_ns(), self._number + 1)
        self._number = last + len(numbers)

        def requeue(connection: Any) -> list[str]:
            for position, number in enumerate(numbers):
                connection.execute(
                    "INSERT INTO changes(number,id,method,path,key,size,recorded,attempts,contents,"
                    "file) SELECT max(?,coalesce((SELECT max(number) FROM changes),0)+1),id,method,"
                    "path,key,size,?,attempts,contents,file FROM dead WHERE number=?",
                    (last + position, time.time(), number),
                )
            _deleted(connection, "dead", numbers)
            return []

        self._write(requeue)

    def delete_dead(self, numbers: Sequence[int]) -> None:
        """Forget dead letters."""
        self._write(lambda connection: _deleted(connection, "dead", numbers))

    def _databases(self) -> list[Database]:
        return [self._database] if self._overflow is None else [self._database, self._overflow]

    def _payloads_of(self, database: Database) -> PayloadDirectory:
        return self._payloads if database is self._database else self._overflow_payloads

    def _write(self, action: Callable[[Any], Any]) -> None:
        """Change the databases; ``action`` may return names of payloads to delete."""
        import sqlite3

        for database in reversed(self._databases()):
            try:
                files = _in_transaction(database, action)
            except sqlite3.OperationalError:
                database.free_space()
                files = _in_transaction(database, action)
            if isinstance(files, list):
                self._payloads_of(database).delete(files)

    def _delete_payloads(self, changes: Sequence[QueuedChange]) -> None:
        numbers = [change.number for change in changes]
        for database in self._databases():
            with database.lock:
                marks = ",".join("?" * len(numbers))
                rows = database.connection.execute(
                    f"SELECT file FROM changes WHERE file IS NOT NULL AND number IN ({marks})",
                    numbers,
                ).fetchall()
            self._payloads_of(database).delete(row[0] for row in rows)


def _in_transaction(database: Database, action: Callable[[Any], Any]) -> Any:
    with database.transaction() as connection:
        return action(connection)


def _value(database: Database, query: str) -> Any:
    with database.lock:
        return database.connection.execute(query).fetchone()[0]


def _pending_in(database: Database) -> Iterator[QueuedChange]:
    with database.lock:
        rows = database.connection.execute(
            "SELECT number,id,method,path,key,size,recorded,owner,batch,tries,attempts,"
            "rounds,due,reason FROM changes ORDER BY number"
        ).fetchall()
        name, us = database.name, database.owner
    active: dict[str, bool] = {us: True}
    for number, id, method, path, key, size, recorded, owner, *rest in rows:
        if owner is not None and owner not in active:
            active[owner] = is_active(owner.partition("#")[0])
        done = owner is None or not active[owner]
        id = id or f"{name}.{number}"
        yield QueuedChange(number, id, method, path, key, size, recorded, done, *rest)


def _deleted(connection: Any, table: str, numbers: Sequence[int]) -> list[str]:
    """Delete rows; give the files of their contents."""
    files: list[str] = []
    for number in numbers:
        row = connection.execute(
            f"DELETE FROM {table} WHERE number=? RETURNING file", (number,)
        ).fetchone()
        if row is not None and row[0] is not None:
            files.append(row[0])
    return files
