"""Tables of pending changes and dead letters, with large contents in separate files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

from oh_jupyter.storage.webhook.changes import Change
from oh_jupyter.storage.webhook.database import Database, PayloadDirectory, is_active

LARGE_BYTES = 65_536
"""Maximum size of contents in the database; larger ones are separate files."""

_MAX_DEAD_LETTERS = 1000
_COLUMNS = (
    "number,owner,method,path,key,size,recorded,id,batch,tries,attempts,rounds,due,reason,"
    "contents,file"
)
_NEXT_NUMBER = "max(?,coalesce((SELECT max(number) FROM changes),0)+1)"


@dataclass
class RecordedChange:
    """A recorded change without its contents."""

    number: int
    id: str
    method: str
    path: str
    key: str
    size: int
    recorded: float


@dataclass
class QueuedChange(RecordedChange):
    """A pending change."""

    done: bool  # whether the store has applied it
    batch: str | None  # id of the request that contained it
    tries: int  # in the current round of quick tries
    attempts: int  # in total
    rounds: int  # failed rounds of quick tries
    due: float  # seconds since the epoch
    reason: str


@dataclass
class DeadLetter(RecordedChange):
    """A change that was given up; without its contents it cannot be replayed."""

    attempts: int
    reason: str
    superseded: int
    has_contents: int


class ChangeTable:
    """Tables of one database; each method is one transaction."""

    def __init__(self, path: str | None, payloads_beside: str | None) -> None:
        self.database = Database(path)
        self._payloads_beside = payloads_beside
        self._payloads = PayloadDirectory(payloads_beside)

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child."""
        self.database.reset_after_fork()
        self._payloads = PayloadDirectory(self._payloads_beside)

    def close(self) -> None:
        """Close the database; the next use reopens it, or creates a new temporary one."""
        self.database.close()
        self._payloads.close()

    def delete_orphans(self) -> None:
        """Delete contents that no change refers to."""
        rows = self._rows(
            "SELECT file FROM changes WHERE file IS NOT NULL "
            "UNION SELECT file FROM dead WHERE file IS NOT NULL"
        )
        self._payloads.delete_orphans({row[0] for row in rows})

    def insert(self, change: Change, number: int, *, beside: bool = True) -> int:
        """Record a change; return its number, which is at least ``number``."""
        file = None
        contents, size = change.contents, len(change.contents)
        if beside and (change.source is not None or size > LARGE_BYTES):
            # SQLite would load all of it into memory.
            file, size = self._payloads.store(change)
            contents = b""
        row = (change.method, change.path, change.key, size, time.time(), contents, file)
        try:
            with self.database.lock:
                connection = self.database.connection  # opening it sets the owner
                cursor = connection.execute(
                    "INSERT INTO changes(number,owner,method,path,key,size,recorded,contents,file) "
                    f"VALUES({_NEXT_NUMBER},?,?,?,?,?,?,?,?)",
                    (number, self.database.owner, *row),
                )
                return cast(int, cursor.lastrowid)
        except BaseException:
            if file is not None:
                self._payloads.delete([file])
            raise

    def insert_dead(self, change: Change, number: int, reason: str) -> None:
        """Record a lost change, whose contents could not be kept."""
        with self.database.transaction() as connection:
            id = f"{self.database.name}.{number}"
            row = (number, id, change.method, change.path, change.key, len(change.contents))
            connection.execute(
                "INSERT INTO dead(number,id,method,path,key,size,recorded,attempts,reason) "
                "VALUES(?,?,?,?,?,?,?,0,?)",
                (*row, time.time(), reason),
            )

    def take_over(self, other: ChangeTable) -> None:
        """Copy all rows of another table of this process in one transaction."""
        name, owner, files = other.database.name, self.database.owner, []
        with other.database.lock:
            rows = other._rows(f"SELECT {_COLUMNS} FROM changes")
            dead = other._rows("SELECT * FROM dead")
        try:
            with self.database.transaction() as connection:
                for number, theirs, method, path, key, size, recorded, id, *state, file in rows:
                    if file is not None:
                        source = other._payloads.path(file)
                        file = self._payloads.store(Change("POST", path, key, source=source))[0]
                        files.append(file)
                    id, ours = id or f"{name}.{number}", theirs and owner
                    row = (number, ours, method, path, key, size, recorded, id, *state, file)
                    connection.execute(
                        f"INSERT INTO changes({_COLUMNS}) VALUES({_marks(row)})", row
                    )
                for row in dead:
                    connection.execute(f"INSERT OR REPLACE INTO dead VALUES({_marks(row)})", row)
        except BaseException:
            self._payloads.delete(files)
            raise

    def mark_done(self, numbers: Iterable[int]) -> None:
        """Record that the store has applied these changes."""
        rows = [(number,) for number in numbers]
        self._write("UPDATE changes SET owner=NULL WHERE number=?", rows)

    def pending(self) -> Iterator[QueuedChange]:
        """Iterate over the pending changes, oldest first."""
        with self.database.lock:
            rows = self._rows(
                "SELECT number,id,method,path,key,size,recorded,owner,batch,tries,attempts,"
                "rounds,due,reason FROM changes ORDER BY number"
            )
            name = self.database.name
            active: dict[str, bool] = {self.database.owner: True}
        for number, id, method, path, key, size, recorded, owner, *rest in rows:
            if owner is not None and owner not in active:
                active[owner] = is_active(owner.partition("#")[0])
            done = owner is None or not active[owner]
            id = id or f"{name}.{number}"
            yield QueuedChange(number, id, method, path, key, size, recorded, done, *rest)

    def fetch(self, number: int) -> bytes | IO[bytes] | None:
        """Return the contents, as an open file if they are large; None if they are gone."""
        rows = self._rows("SELECT file,contents FROM changes WHERE number=?", number)
        if not rows:
            return None
        file, contents = rows[0]
        return contents or b"" if file is None else self._payloads.open(file)

    def delete(self, numbers: Sequence[int]) -> None:
        """Delete changes."""
        self._transact(lambda connection: _deleted(connection, "changes", numbers))

    def delete_accepted(self, changes: Sequence[QueuedChange]) -> None:
        """Delete accepted changes, and mark the dead letters that they supersede."""

        def accept(connection: Any) -> list[str]:
            if connection.execute("SELECT 1 FROM dead WHERE NOT superseded LIMIT 1").fetchone():
                connection.executemany(
                    "UPDATE dead SET superseded=1 WHERE number<? AND (key=? OR "
                    "(?='DELETE' AND (?='' OR substr(key,1,length(?)+1)=?||'/')))",
                    [(c.number, c.key, c.method, c.key, c.key, c.key) for c in changes],
                )
            return _deleted(connection, "changes", [c.number for c in changes])

        self._transact(accept)

    def delete_payloads(self, numbers: Sequence[int]) -> None:
        """Delete the large contents of changes, without a transaction."""
        rows = self._rows(
            f"SELECT file FROM changes WHERE file IS NOT NULL AND number IN ({_marks(numbers)})",
            *numbers,
        )
        self._payloads.delete(row[0] for row in rows)

    def reschedule(self, changes: Sequence[QueuedChange]) -> None:
        """Record the attempts, the request and the due time of changes."""
        self._write(
            "UPDATE changes SET tries=?,attempts=?,rounds=?,due=?,reason=?,batch=? WHERE number=?",
            [(c.tries, c.attempts, c.rounds, c.due, c.reason, c.batch, c.number) for c in changes],
        )

    def give_up(self, changes: Sequence[QueuedChange], keep_contents: bool) -> None:
        """Turn changes into dead letters, and delete the oldest beyond a thousand."""
        payload = "contents,file" if keep_contents else "NULL,NULL"

        def give_up(connection: Any) -> list[str]:
            connection.executemany(
                "INSERT OR REPLACE INTO dead(number,id,method,path,key,size,recorded,attempts,"
                "reason,contents,file) SELECT number,?,method,path,key,size,recorded,?,?,"
                f"{payload} FROM changes WHERE number=?",
                [(c.id, c.attempts, c.reason, c.number) for c in changes],
            )
            files = _deleted(connection, "changes", [change.number for change in changes])
            old = connection.execute(
                "SELECT number FROM dead ORDER BY number DESC LIMIT -1 OFFSET ?",
                (_MAX_DEAD_LETTERS,),
            ).fetchall()
            excess = _deleted(connection, "dead", [row[0] for row in old])
            return excess if keep_contents else [*files, *excess]

        self._transact(give_up)

    def totals(self) -> tuple[int, int]:
        """Return the number of pending changes and the size of their contents."""
        count, size = self._rows("SELECT count(*),coalesce(sum(size),0) FROM changes")[0]
        return int(count), int(size)

    def last_number(self) -> int:
        """Return the number of the newest change; 0 if there is none."""
        return int(self._rows("SELECT coalesce(max(number),0) FROM changes")[0][0])

    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters, oldest first."""
        rows = self._rows(
            "SELECT number,id,method,path,key,size,recorded,attempts,reason,superseded,"
            "contents IS NOT NULL FROM dead ORDER BY number"
        )
        return [DeadLetter(*row) for row in rows]

    def requeue(self, numbers: Sequence[int], first: int) -> None:
        """Queue dead letters again, with the same ids and new numbers from ``first`` on."""

        def requeue(connection: Any) -> list[str]:
            for position, number in enumerate(numbers):
                connection.execute(
                    "INSERT INTO changes(number,id,method,path,key,size,recorded,attempts,contents,"
                    f"file) SELECT {_NEXT_NUMBER},id,method,path,key,size,?,attempts,contents,file "
                    "FROM dead WHERE number=?",
                    (first + position, time.time(), number),
                )
            _deleted(connection, "dead", numbers)
            return []

        self._transact(requeue)

    def delete_dead(self, numbers: Sequence[int]) -> None:
        """Delete dead letters."""
        self._transact(lambda connection: _deleted(connection, "dead", numbers))

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.database.lock:
            return self.database.connection.execute(query, values).fetchall()

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        def write(connection: Any) -> list[str]:
            connection.executemany(statement, rows)
            return []

        self._transact(write)

    def _transact(self, action: Callable[[Any], list[str]]) -> None:
        """Run an action in a transaction, then delete the files that it returns."""
        import sqlite3

        try:
            files = self._run(action)
        except sqlite3.OperationalError:
            self.database.free_space()
            files = self._run(action)
        self._payloads.delete(files)

    def _run(self, action: Callable[[Any], list[str]]) -> list[str]:
        with self.database.transaction() as connection:
            return action(connection)


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


def _deleted(connection: Any, table: str, numbers: Sequence[int]) -> list[str]:
    """Delete rows; return the files of their contents."""
    files: list[str] = []
    for number in numbers:
        row = connection.execute(
            f"DELETE FROM {table} WHERE number=? RETURNING file", (number,)
        ).fetchone()
        if row is not None and row[0] is not None:
            files.append(row[0])
    return files
