"""What a receiver still has to hear of, recorded before the store does it.

What a process that was killed had recorded counts as done. While the disk is full, changes are kept
in memory.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO

from oh_jupyter.locks import file_lock, is_locked_file
from oh_jupyter.storage.webhook.change_table import ChangeTable, DeadLetter, QueuedChange
from oh_jupyter.storage.webhook.changes import Change, Delivery
from oh_jupyter.storage.webhook.database import IN_MEMORY, is_active, process_identity

_log = logging.getLogger(__name__)
_MAX_OVERFLOW_BYTES = 64 << 20
_CHECK_SECONDS = 2.0
_MAX_IDENTITY_BYTES = 200


class OutboxFullError(Exception):
    """A change can be kept neither on the disk nor in memory."""


class Outbox:
    """The changes that wait, in a database file; a path of None ends with the process."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self._table = ChangeTable(path, path)
        self._number = 0  # of the last change recorded here
        self._begin()

    def _begin(self) -> None:
        self.sender_lock = SenderLock(self.path)
        self._overflow: ChangeTable | None = None
        self._overflow_lock = threading.Lock()  # held while it comes or goes
        self._unsaved: dict[int, QueuedChange] = {}  # their new state is not written yet
        self._accepted: dict[int, QueuedChange] = {}  # not deleted yet

    def reset_after_fork(self) -> None:
        """Begin anew in a forked child."""
        self._table.reset_after_fork()
        self._begin()

    def maintain(self) -> None:
        """Do what can be done later: write down what a full disk did not take, and tidy up."""
        if self._accepted:
            self.accept(list(self._accepted.values()))
        if self._unsaved:
            self.reschedule(list(self._unsaved.values()))
        if self._overflow is not None:
            with self._overflow_lock:
                self._move_overflow(self._overflow)
        self._table.database.checkpoint()
        self._table.database.reserve_space()

    def delete_orphans(self) -> None:
        """Delete contents that belong to no change any more."""
        self._table.delete_orphans()

    def close(self) -> None:
        """Close the database; the next use opens it again, a temporary one empty."""
        if self._overflow is None:  # or what is in memory would be gone
            self._table.close()

    @property
    def undurable(self) -> int:
        """How many changes wait in memory, since the disk of the outbox is full."""
        overflow = self._overflow  # the sender may take it away meanwhile
        return 0 if overflow is None else overflow.totals()[0]

    def add(self, change: Change) -> int:
        """Record a change that the store is about to do, and give its number."""
        import sqlite3

        try:
            try:
                return self._insert(self._table, change)
            except (sqlite3.OperationalError, OSError):
                # What is done with may make room.
                self._table.database.free_space()
                return self._insert(self._table, change)
        except (sqlite3.Error, OSError) as error:
            with self._overflow_lock:
                return self._add_overflow(change, error)

    def _insert(self, table: ChangeTable, change: Change, *, beside: bool = True) -> int:
        # In the order of time, also where it is partly on disk and partly in memory.
        self._number = table.insert(change, self._next_number(), beside=beside)
        return self._number

    def _next_number(self) -> int:
        return max(time.time_ns(), self._number + 1)

    def _add_overflow(self, change: Change, reason: Exception) -> int:
        if self._overflow is None:
            _log.warning(
                "The outbox cannot keep changes on disk (%s): they are kept in memory until it can",
                reason,
            )
        overflow = self._opened_overflow()
        if overflow.totals()[1] + len(change.contents) > _MAX_OVERFLOW_BYTES:
            raise OutboxFullError(str(reason)) from reason
        try:
            return self._insert(overflow, change)
        except OSError as error:
            if change.source is not None:
                raise OutboxFullError(str(error)) from error
            return self._insert(overflow, change, beside=False)

    def _opened_overflow(self) -> ChangeTable:
        if self._overflow is None:
            self._overflow = ChangeTable(IN_MEMORY, None)
        return self._overflow

    def _move_overflow(self, overflow: ChangeTable) -> None:
        """Take what is kept in memory to the disk, if that has room again."""
        import sqlite3

        # Nothing may be added meanwhile, by a thread that has looked which tables there are.
        with overflow.database.lock:
            try:
                self._table.take_over(overflow)
            except (sqlite3.Error, OSError):
                return
            self._overflow = None
            overflow.close()
        _log.warning("The outbox keeps changes on disk again")

    def add_dead(self, change: Change, reason: str) -> None:
        """Note a change that cannot be kept, so that people can see that it is lost."""
        with self._overflow_lock:
            self._number = self._next_number()
            self._opened_overflow().insert_dead(change, self._number, reason)

    def mark_done(self, numbers: Iterable[int]) -> None:
        """Note that the store has done these changes."""
        found = list(numbers)
        self._each(lambda table: table.mark_done(found))

    def pending(self) -> list[QueuedChange]:
        """List the changes that wait, the oldest first."""
        found = [change for table in self._tables() for change in table.pending()]
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
        found = None
        for table in self._tables():
            found = table.fetch(number) if found is None else found
        with contextlib.nullcontext(found) if isinstance(found, bytes | None) else found:
            yield found

    def remove(self, numbers: Sequence[int]) -> None:
        """Forget changes that nobody has to hear of (any more)."""
        if numbers:
            self._each(lambda table: table.delete(numbers))

    def accept(self, changes: Sequence[QueuedChange]) -> None:
        """Forget changes that the receiver has, and the dead letters that they supersede."""
        import sqlite3

        self._accepted.update((change.number, change) for change in changes)
        try:
            self._each(lambda table: table.delete_accepted(changes))
        except sqlite3.Error:
            # That makes room for the next attempt.
            numbers = [change.number for change in changes]
            self._each(lambda table: table.delete_payloads(numbers))
            return
        for change in changes:
            self._accepted.pop(change.number, None)
            self._unsaved.pop(change.number, None)

    def reschedule(self, changes: Sequence[QueuedChange]) -> None:
        """Note that changes were tried, in which request, and when they are due again."""
        import sqlite3

        self._unsaved.update((change.number, change) for change in changes)
        with contextlib.suppress(sqlite3.Error):
            self._each(lambda table: table.reschedule(changes))
            for change in changes:
                self._unsaved.pop(change.number, None)

    def give_up(self, changes: Sequence[QueuedChange], keep_contents: bool = True) -> None:
        """Make dead letters of changes."""
        self._each(lambda table: table.give_up(changes, keep_contents))
        for change in changes:
            self._unsaved.pop(change.number, None)

    def totals(self) -> tuple[int, int]:
        """Count the changes that wait, and the bytes of their contents."""
        if self._accepted:
            pending = self.pending()
            return len(pending), sum(change.size for change in pending)
        totals = [table.totals() for table in self._tables()]
        return sum(count for count, _ in totals), sum(size for _, size in totals)

    def last_number(self) -> int:
        """Number of the newest change that waits; 0 if none does."""
        return max(table.last_number() for table in self._tables())

    def deliveries(self) -> list[Delivery]:
        """List what the receiver does not have, in the order in which it happened."""
        pending = self.pending()
        newest = {change.key: change.number for change in pending}
        found = [(change.number, _waiting(change)) for change in pending]
        for letter in self._dead_letters():
            superseded = bool(letter.superseded) or newest.get(letter.key, 0) > letter.number
            found.append((letter.number, _dead(letter, superseded)))
        return [delivery for _, delivery in sorted(found, key=lambda pair: pair[0])]

    def replay(self, ids: Collection[str], *, force: bool) -> int:
        """Queue dead letters again, those named or all; superseded ones only if forced."""
        superseded = {d.id for d in self.deliveries() if d.superseded}
        numbers = [
            letter.number
            for letter in self._dead_letters()
            if (not ids or letter.id in ids)
            and letter.has_contents
            and (force or letter.id not in superseded)
        ]
        first = self._next_number()
        self._number = first + len(numbers)
        self._each(lambda table: table.requeue(numbers, first))
        return len(numbers)

    def discard(self, ids: Collection[str]) -> int:
        """Forget dead letters, those named or all, and count them."""
        numbers = [letter.number for letter in self._dead_letters() if not ids or letter.id in ids]
        self._each(lambda table: table.delete_dead(numbers))
        return len(numbers)

    def _dead_letters(self) -> list[DeadLetter]:
        found = [letter for table in self._tables() for letter in table.dead_letters()]
        return sorted(found, key=lambda letter: letter.number)

    def _tables(self) -> list[ChangeTable]:
        overflow = self._overflow
        return [self._table] if overflow is None else [self._table, overflow]

    def _each(self, write: Callable[[ChangeTable], None]) -> None:
        # The one in memory first: it cannot fail.
        for table in reversed(self._tables()):
            write(table)


def _waiting(change: QueuedChange) -> Delivery:
    due = datetime.fromtimestamp(change.due, UTC)
    return Delivery(
        change.id,
        "DELETE" if change.method == "DELETE" else "POST",
        change.path,
        change.size,
        "waiting",
        change.attempts,
        change.reason or "",
        datetime.fromtimestamp(change.recorded, UTC),
        due if due > datetime.now(UTC) else None,
    )


def _dead(letter: DeadLetter, superseded: bool) -> Delivery:
    return Delivery(
        letter.id,
        letter.method,
        letter.path,
        letter.size,
        "dead",
        letter.attempts,
        letter.reason,
        datetime.fromtimestamp(letter.recorded, UTC),
        None,
        superseded,
    )


class SenderLock:
    """Held by the one process that sends; another takes it from a process that is stopped."""

    def __init__(self, outbox: str | None) -> None:
        self._path = None if outbox is None else outbox + "-turn"
        self._holding = contextlib.ExitStack()
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Wait until nobody else sends."""
        if self._path is None or self.is_held():
            return
        self.release()
        while self._descriptor is None:
            try:
                self._descriptor = self._holding.enter_context(
                    file_lock(self._path, _CHECK_SECONDS)
                )
            except TimeoutError:
                self._take_from_stopped()
        with contextlib.suppress(OSError):  # a full disk: then nobody knows that we are stopped
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, process_identity().encode())

    def is_held(self) -> bool:
        """Tell whether it is still held; nobody asks before it is taken away."""
        if self._path is None:
            return True
        return self._descriptor is not None and is_locked_file(self._path, self._descriptor)

    def release(self) -> None:
        """Let others send."""
        self._descriptor = None
        self._holding.close()

    def _take_from_stopped(self) -> None:
        assert self._path is not None
        with file_lock(self._path + "-takeover"):
            holder = _read_identity(self._path)
            if holder and not is_active(holder):
                # Its lock stays with the old file. When it goes on, it sees that it lost it.
                with contextlib.suppress(OSError):
                    os.unlink(self._path)


def _read_identity(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_IDENTITY_BYTES).decode("ascii", "replace")
    except OSError:
        return ""
