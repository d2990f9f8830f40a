"""Pending changes and dead letters in a ledger of their own, with large contents in files.

Several processes may share it. Changes recorded by a killed process count as applied.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from oh_jupyter.errors import LedgerError, StoreConfigError
from oh_jupyter.state.contents import Stored, contents_of, discard_orphans
from oh_jupyter.state.ledger import Ledger
from oh_jupyter.storage.webhook.changes import Change, Delivery, PendingChange
from oh_jupyter.storage.webhook.owner import is_alive, new_owner
from oh_jupyter.storage.webhook.sender_lock import SenderLock

OUTBOX_ERRORS = (LedgerError, OSError)
"""Errors of an outbox whose disk is full or missing."""

_MAX_DEAD_LETTERS = 1000
_MAX_ACCEPTED = 64
_ACCEPT_SECONDS = 0.2
_LOG_BYTES = 64 << 20
_SUFFIXES = (".sqlite3", ".sqlite", ".db")


class _DeadLetter(NamedTuple):
    """A change that was given up; without its contents it cannot be replayed."""

    number: int
    id: str
    method: str
    path: str
    key: str
    size: int
    recorded: float
    attempts: int
    reason: str
    superseded: int = 0
    has_contents: int = 0


class Outbox:
    """Pending changes in a database file; without a path, they last as long as the process.

    Each method is one transaction.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        # A damaged file may belong to another program, so it stays. The sending thread shortens
        # the log.
        file = None if path is None else Path(path)
        self._ledger = Ledger(file, is_replaced=False, log_bytes=_LOG_BYTES)
        self._reset()
        if path is not None:
            self._open(path)

    def _open(self, path: str) -> None:
        """Report an unusable path at once."""
        try:
            self._ledger.name  # noqa: B018
        except LedgerError as error:
            raise StoreConfigError(
                f"The outbox {path!r} cannot be opened: {cause_of(error)}; "
                "name a writable directory, or an existing SQLite file."
            ) from error
        self._ledger.maintain()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._owner = ""
        self._contents = contents_of(self._ledger)
        self.sender_lock = SenderLock(self._ledger)
        self._applying: set[int] = set()  # changes that the store has not applied yet
        self._accepted: dict[int, PendingChange] = {}  # by the receiver, and not deleted yet
        self._accepted_at = 0.0
        self._losses: list[_DeadLetter] = []  # not on disk yet

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child; the ledger does so itself."""
        self._reset()

    def close(self) -> None:
        """Close the database; the next use reopens it, or creates a new temporary one."""
        with self._lock:
            self._ledger.close()
            self._contents.close()
            if self.path is None:
                self._applying, self._accepted = set(), {}

    def maintain(self) -> None:
        """Do what can wait until nothing is sent."""
        self._ledger.maintain()
        self._write_losses()

    def delete_orphans(self) -> None:
        """Delete contents that no change refers to."""
        discard_orphans(self._ledger)

    # Changes that the store of this process applies:

    def add(self, change: Change) -> int:
        """Record a change that the store is about to apply; return its number.

        Raises:
            OUTBOX_ERRORS: The disk is full or missing.
        """
        if change.source is None:
            stored, size = self._contents.put(change.contents), len(change.contents)
        else:
            name, size = self._contents.copy(change.source)
            stored = Stored(None, name)
        row = (change.method, change.path, change.key, size, time.time(), *stored)
        try:
            with self._lock:
                self._owner = self._owner or new_owner()
                number = self._ledger.insert(
                    "INSERT INTO deliveries(owner,method,path,key,size,recorded,contents,file) "
                    "VALUES(?,?,?,?,?,?,?,?)",
                    (self._owner, *row),
                )
                self._applying.add(number)
                return number
        except BaseException:
            self._contents.discard([stored.name])
            raise

    def confirm(self, numbers: Iterable[int]) -> None:
        """Note that the store has applied changes; `mark_applied` tells other processes."""
        with self._lock:
            self._applying.difference_update(numbers)

    def mark_applied(self, numbers: Iterable[int]) -> None:
        """Record that the store has applied changes."""
        rows = [(number,) for number in numbers]
        self._write("UPDATE deliveries SET owner=NULL WHERE number=?", rows)

    def record_loss(self, change: Change, reason: str) -> None:
        """List a change that cannot be recorded as a dead letter."""
        row = (change.method, change.path, "", len(change.contents), time.time(), 0, reason)
        with self._lock:
            losses = [*self._losses, _DeadLetter(0, f"lost.{uuid.uuid4().hex}", *row)]
            self._losses = losses[-_MAX_DEAD_LETTERS:]
            self._write_losses()

    def _write_losses(self) -> None:
        """Move the list of lost changes to the disk, unless it is full."""
        with self._lock, contextlib.suppress(*OUTBOX_ERRORS):
            self._write(
                "INSERT INTO dead_letters(number,id,method,path,key,size,recorded,attempts,reason) "
                "SELECT min(coalesce(min(number),0),0)-1,?,?,?,?,?,?,?,? FROM dead_letters",
                [letter[1:9] for letter in self._losses],
            )
            self._losses.clear()

    # Changes to send:

    def pending(self) -> list[PendingChange]:
        """Return the pending changes, oldest first."""
        with self._lock:
            rows = self._rows(
                "SELECT owner,number,id,method,path,key,size,recorded,batch,tries,attempts,rounds,"
                "due,reason FROM deliveries ORDER BY number"
            )
            name, own = self._ledger.name, self._owner
            applying, accepted = set(self._applying), set(self._accepted)
        alive: dict[str, bool] = {}
        pending = []
        for owner, number, id, *rest in rows:
            if number in accepted:
                continue
            is_applied = owner is None
            if owner == own:
                is_applied = number not in applying
            elif owner is not None:
                if owner not in alive:
                    alive[owner] = is_alive(owner)
                is_applied = not alive[owner]
            row = (number, id or f"{name}.{number}", *rest, is_applied, owner == own)
            pending.append(PendingChange._make(row))
        return pending

    @contextlib.contextmanager
    def contents(self, number: int) -> Iterator[bytes | IO[bytes] | None]:
        """Yield the contents, as a file if they are large; None if the change is gone.

        Raises:
            FileNotFoundError: The file is missing.
        """
        rows = self._rows("SELECT file,contents FROM deliveries WHERE number=?", number)
        file, contents = rows[0] if rows else (None, None)
        if file is None:
            yield contents if contents or not rows else b""
        else:
            with self._contents.open(file) as stream:
                yield stream

    def save(self, changes: Sequence[PendingChange]) -> None:
        """Record the attempts, the request and the due time of changes."""
        self._write(
            "UPDATE deliveries SET tries=?,attempts=?,rounds=?,due=?,reason=?,batch=? "
            "WHERE number=?",
            [(c.tries, c.attempts, c.rounds, c.due, c.reason, c.batch, c.number) for c in changes],
        )

    def accept(self, changes: Iterable[PendingChange]) -> None:
        """Delete accepted changes, several in one transaction."""
        with self._lock:
            if not self._accepted:
                self._accepted_at = time.monotonic()
            self._accepted.update((change.number, change) for change in changes)
            is_late = time.monotonic() > self._accepted_at + _ACCEPT_SECONDS
        if is_late or len(self._accepted) >= _MAX_ACCEPTED:
            self.write_accepted()

    def write_accepted(self) -> None:
        """Delete the accepted changes now; a full disk keeps them, but they are not sent again."""
        with self._lock:
            accepted = list(self._accepted.values())
            self._accepted_at = time.monotonic()
            with contextlib.suppress(LedgerError):
                if accepted:
                    self._clear(lambda connection: _delete_accepted(connection, accepted))
                    self._accepted = {}

    def give_up(self, changes: Sequence[PendingChange], keep_contents: bool = True) -> None:
        """Turn changes into dead letters, and delete the oldest beyond a thousand."""
        payload = "contents,file" if keep_contents else "NULL,NULL"

        def give_up(connection: sqlite3.Connection) -> list[str]:
            connection.executemany(
                "INSERT OR REPLACE INTO dead_letters(number,id,method,path,key,size,recorded,"
                "attempts,reason,contents,file) SELECT number,?,method,path,key,size,recorded,?,?,"
                f"{payload} FROM deliveries WHERE number=?",
                [(c.id, c.attempts, c.reason, c.number) for c in changes],
            )
            files = _delete(connection, "deliveries", [change.number for change in changes])
            old = connection.execute(
                "SELECT number FROM dead_letters ORDER BY number DESC LIMIT -1 OFFSET ?",
                (_MAX_DEAD_LETTERS,),
            ).fetchall()
            excess = _delete(connection, "dead_letters", [row[0] for row in old])
            return excess if keep_contents else [*files, *excess]

        self._clear(give_up)

    def remove(self, numbers: Collection[int]) -> None:
        """Delete changes that need no report."""
        if numbers:
            self._clear(lambda connection: _delete(connection, "deliveries", numbers))
            self.confirm(numbers)

    def count(self) -> int:
        """Return the number of pending changes."""
        with self._lock:
            row = self._ledger.row("SELECT count(*) FROM deliveries")
            return (0 if row is None else int(row[0])) - len(self._accepted)

    def last_number(self) -> int:
        """Return the number of the newest pending change; 0 if there is none."""
        row = self._ledger.row("SELECT coalesce(max(number),0) FROM deliveries")
        return 0 if row is None else int(row[0])

    # Lists for people:

    def deliveries(self) -> list[Delivery]:
        """Return the undelivered changes, oldest first."""
        pending, now = self.pending(), datetime.now(UTC)
        newest = {change.key: change.number for change in pending}
        waiting = [_waiting(change, now) for change in pending]
        dead = [
            _dead(letter, bool(letter.superseded) or newest.get(letter.key, 0) > letter.number)
            for letter in self._dead_letters()
        ]
        return sorted([*waiting, *dead], key=lambda delivery: delivery.recorded)

    def replay(self, ids: Collection[str], *, force: bool) -> int:
        """Queue the named dead letters again, or all; superseded ones only with ``force``."""
        superseded = {d.id for d in self.deliveries() if d.superseded}
        numbers = [
            letter.number
            for letter in self._dead_letters()
            if (not ids or letter.id in ids)
            and letter.has_contents
            and (force or letter.id not in superseded)
        ]

        with self._ledger.transaction() as connection:
            connection.executemany(
                "INSERT INTO deliveries(id,method,path,key,size,recorded,attempts,contents,file) "
                "SELECT id,method,path,key,size,?,attempts,contents,file FROM dead_letters "
                "WHERE number=?",
                [(time.time(), number) for number in numbers],
            )
            _delete(connection, "dead_letters", numbers)  # but not the files, which have new owners
        return len(numbers)

    def discard(self, ids: Collection[str]) -> int:
        """Delete the named dead letters, or all; return their number."""
        numbers = [letter.number for letter in self._dead_letters() if not ids or letter.id in ids]
        with self._lock:
            self._losses = [each for each in self._losses if ids and each.id not in ids]
            self._clear(lambda connection: _delete(connection, "dead_letters", numbers))
        return len(numbers)

    def _dead_letters(self) -> list[_DeadLetter]:
        with self._lock:
            rows = self._rows(
                "SELECT number,id,method,path,key,size,recorded,attempts,reason,superseded,"
                "coalesce(contents,file) IS NOT NULL FROM dead_letters ORDER BY number"
            )
            return [*(_DeadLetter(*row) for row in rows), *self._losses]

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._ledger.rows(query, values)

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            with self._ledger.transaction() as connection:
                connection.executemany(statement, rows)

    def _clear(self, action: Callable[[sqlite3.Connection], list[str]]) -> None:
        """Delete rows in a transaction, then the files that the action returns.

        If the disk is full, this uses the space that is reserved for it.
        """
        try:
            with self._ledger.transaction() as connection:
                files = action(connection)
        except LedgerError:
            self._ledger.free_space()
            with self._ledger.transaction() as connection:
                files = action(connection)
        self._contents.discard(files)


def _delete(connection: sqlite3.Connection, table: str, numbers: Iterable[int]) -> list[str]:
    """Delete rows; return the files of their contents."""
    files: list[str] = []
    for number in numbers:
        row = connection.execute(
            f"DELETE FROM {table} WHERE number=? RETURNING file", (number,)
        ).fetchone()
        if row is not None and row[0] is not None:
            files.append(row[0])
    return files


def _delete_accepted(connection: sqlite3.Connection, changes: Sequence[PendingChange]) -> list[str]:
    """Delete accepted changes, and mark the dead letters that they supersede."""
    if connection.execute("SELECT 1 FROM dead_letters WHERE NOT superseded LIMIT 1").fetchone():
        connection.executemany(
            "UPDATE dead_letters SET superseded=1 WHERE number<? AND (key=? OR "
            "(?='DELETE' AND (?='' OR substr(key,1,length(?)+1)=?||'/')))",
            [(c.number, c.key, c.method, c.key, c.key, c.key) for c in changes],
        )
    return _delete(connection, "deliveries", [change.number for change in changes])


def _waiting(change: PendingChange, now: datetime) -> Delivery:
    recorded, due = (datetime.fromtimestamp(each, UTC) for each in (change.recorded, change.due))
    outcome = (change.attempts, change.reason or "", recorded, due if due > now else None)
    return Delivery(change.id, change.method, change.path, change.size, "waiting", *outcome)


def _dead(letter: _DeadLetter, superseded: bool) -> Delivery:
    recorded = datetime.fromtimestamp(letter.recorded, UTC)
    outcome = (letter.attempts, letter.reason, recorded, None, superseded)
    return Delivery(letter.id, letter.method, letter.path, letter.size, "dead", *outcome)


def outbox_file(outbox: str | os.PathLike[str]) -> str:
    """Return the absolute path of the database, from that of its directory or file."""
    path = os.path.realpath(os.path.expanduser(os.fspath(outbox)))
    if os.path.isfile(path) or (not os.path.isdir(path) and path.endswith(_SUFFIXES)):
        return path
    return os.path.join(path, "outbox.sqlite3")


def cause_of(error: Exception) -> BaseException:
    """Return the error of the database or the disk from which one of the ledger comes."""
    return (error.__cause__ or error) if isinstance(error, LedgerError) else error
