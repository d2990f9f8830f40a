"""What a receiver still has to hear of, in the order in which it happened.

A change is recorded before the store is touched, so that nothing can be lost in between,
and is ready to be sent when the store has done it. Of a process that was killed in
between, everything that it recorded counts as ready.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

from oh_jupyter.storage.webhook.changes import Update
from oh_jupyter.storage.webhook.database import Database
from oh_jupyter.storage.webhook.payloads import LARGE_BYTES, PayloadDirectory
from oh_jupyter.storage.webhook.sender_lock import still_runs, turn

__all__ = ["Outbox", "Waiting"]

_MAX_DEAD_LETTERS = 1000


@dataclass
class Waiting:
    """A change that waits, without its contents.

    Attributes:
        number: Its place in the order.
        id: How the receiver knows it.
        method: ``POST`` or ``DELETE``.
        path: As the writer gave it.
        key: The one spelling of it.
        size: Bytes of the contents.
        recorded: When, in seconds since the epoch.
        ready: Whether the store has done it.
        batch: Id of the request that it is part of, if it was sent in one before.
        tries: How often it was sent in this round.
        attempts: How often it was sent in all.
        rounds: How many rounds of tries were in vain.
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
    ready: bool
    batch: str | None
    tries: int
    attempts: int
    rounds: int
    due: float
    reason: str


class Outbox:
    """The changes that wait, on disk.

    Args:
        path: The database file; None for one that ends with the process.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self._database = Database(path)
        self._payloads = PayloadDirectory(path)

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._database.reset_after_fork()
        self._payloads = PayloadDirectory(self.path)

    def tidy(self, everything: bool = False) -> None:
        """Do what is left to do on the disk; with ``everything``, make all the room there is."""
        self._database.tidy(everything)

    def sweep(self) -> None:
        """Delete contents that belong to nothing any more."""
        with self._database.lock:
            rows = self._database.connection.execute(
                "SELECT file FROM changes WHERE file IS NOT NULL "
                "UNION SELECT file FROM dead WHERE file IS NOT NULL"
            ).fetchall()
        self._payloads.sweep({row[0] for row in rows})

    def close(self) -> None:
        """Close the database; the next use opens it again, a temporary one empty."""
        self._database.close()
        self._payloads.close()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold while sending, so that two processes do not send at once."""
        if self.path is None:
            yield
            return
        with turn(self.path + "-turn"):
            yield

    def add(self, update: Update) -> int:
        """Record a change that the store is about to do.

        Args:
            update: The change.

        Returns:
            Its number.
        """
        file = None
        contents, size = update.contents, len(update.contents)
        if update.source is not None or size > LARGE_BYTES:
            # SQLite would have all of it in memory.
            file, size = self._payloads.keep(update)
            contents = b""
        database = self._database
        with database.lock:
            connection = database.connection  # opening it finds out who we are
            return cast(
                int,
                connection.execute(
                    "INSERT INTO changes(owner,method,path,key,size,recorded,contents,file) "
                    "VALUES(?,?,?,?,?,?,?,?)",
                    (
                        database.owner,
                        update.method,
                        update.path,
                        update.key,
                        size,
                        time.time(),
                        contents,
                        file,
                    ),
                ).lastrowid,
            )

    def ready(self, numbers: Iterable[int]) -> None:
        """Note that the store has done these changes.

        Args:
            numbers: Which.
        """
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE changes SET owner=NULL WHERE number=?", [(n,) for n in numbers]
            )

    def waiting(self) -> list[Waiting]:
        """List the changes that wait.

        Returns:
            All of them, the oldest first.
        """
        with self._database.lock:
            rows = self._database.connection.execute(
                "SELECT number,id,method,path,key,size,recorded,owner,batch,tries,attempts,"
                "rounds,due,reason FROM changes ORDER BY number"
            ).fetchall()
            name, us = self._database.name, self._database.owner
        alive: dict[str, bool] = {us: True}
        found = []
        for number, id, method, path, key, size, recorded, owner, *rest in rows:
            if owner is not None and owner not in alive:
                alive[owner] = still_runs(owner.partition("#")[0])
            ready = owner is None or not alive[owner]
            id = id or f"{name}.{number}"
            found.append(Waiting(number, id, method, path, key, size, recorded, ready, *rest))
        return found

    @contextlib.contextmanager
    def contents(self, number: int) -> Iterator[bytes | IO[bytes] | None]:
        """Fetch the contents of a change.

        Args:
            number: Which.

        Yields:
            Bytes, or an open file if they are large; None if the change is there no more.
        """
        found = self._fetch(number)
        if found is None or isinstance(found, bytes):
            yield found
            return
        with found:
            yield found

    def _fetch(self, number: int) -> bytes | IO[bytes] | None:
        with self._database.lock:
            found = self._database.connection.execute(
                "SELECT file,contents FROM changes WHERE number=?", (number,)
            ).fetchone()
        if found is None:
            return None
        return found[1] or b"" if found[0] is None else self._payloads.open(found[0])

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget changes that nobody has to hear of (any more).

        Args:
            numbers: Which.
        """
        with self._transaction() as connection:
            files = _deleted(connection, "changes", numbers)
        self._payloads.drop(files)

    def accepted(self, changes: Sequence[Waiting]) -> None:
        """Forget changes that the receiver has, and the failed ones that they replace.

        Args:
            changes: Which.
        """
        with self._transaction() as connection:
            files = _deleted(connection, "changes", [c.number for c in changes])
            if connection.execute("SELECT 1 FROM dead WHERE NOT superseded LIMIT 1").fetchone():
                connection.executemany(
                    "UPDATE dead SET superseded=1 WHERE number<? AND (key=? OR "
                    "(?='DELETE' AND (?='' OR substr(key,1,length(?)+1)=?||'/')))",
                    [(c.number, c.key, c.method, c.key, c.key, c.key) for c in changes],
                )
        self._payloads.drop(files)

    def put_off(self, changes: Sequence[Waiting]) -> None:
        """Note that changes were tried, and when they are due again.

        Args:
            changes: With the new values in them.
        """
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE changes SET tries=?,attempts=?,rounds=?,due=?,reason=? WHERE number=?",
                [(c.tries, c.attempts, c.rounds, c.due, c.reason, c.number) for c in changes],
            )

    def give_up(self, changes: Sequence[Waiting], keep_contents: bool = True) -> None:
        """Put changes aside; a thousand are kept.

        Args:
            changes: Which, with the reason in them.
            keep_contents: Whether they can be sent again later.
        """
        kept = "contents,file" if keep_contents else "NULL,NULL"
        numbers = [change.number for change in changes]
        with self._transaction() as connection:
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
        self._payloads.drop(too_many if keep_contents else [*files, *too_many])

    def stamp(self, changes: Sequence[Waiting], batch: str) -> None:
        """Note that changes are sent in one request: if it is repeated, it is the same.

        Args:
            changes: Which.
            batch: Id of the request.
        """
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE changes SET batch=? WHERE number=?", [(batch, c.number) for c in changes]
            )

    def totals(self) -> tuple[int, int]:
        """Count what waits.

        Returns:
            How many changes, and how many bytes of contents.
        """
        with self._database.lock:
            found = self._database.connection.execute(
                "SELECT count(*),coalesce(sum(size),0) FROM changes"
            ).fetchone()
        return int(found[0]), int(found[1])

    def dead(self) -> list[tuple[Any, ...]]:
        """List what was given up.

        Returns:
            Rows of number, id, method, path, key, size, recorded, attempts, reason,
            superseded, and whether the contents are there; the oldest first.
        """
        with self._database.lock:
            return self._database.connection.execute(
                "SELECT number,id,method,path,key,size,recorded,attempts,reason,superseded,"
                "contents IS NOT NULL FROM dead ORDER BY number"
            ).fetchall()

    def requeue(self, numbers: Sequence[int]) -> None:
        """Let what was given up wait again, at the end and under the same id.

        Args:
            numbers: Which.
        """
        with self._transaction() as connection:
            for number in numbers:
                connection.execute(
                    "INSERT INTO changes(id,method,path,key,size,recorded,attempts,contents,file)"
                    " SELECT id,method,path,key,size,?,attempts,contents,file FROM dead "
                    "WHERE number=?",
                    (time.time(), number),
                )
            _deleted(connection, "dead", numbers)

    def delete_dead(self, numbers: Sequence[int]) -> None:
        """Forget what was given up.

        Args:
            numbers: Which.
        """
        with self._transaction() as connection:
            files = _deleted(connection, "dead", numbers)
        self._payloads.drop(files)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Any]:
        with self._database.lock:
            connection = self._database.connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


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
