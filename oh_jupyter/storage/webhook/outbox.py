"""Changes to report, recorded before the store applies them.

Changes recorded by a killed process count as applied. While the disk is full, changes are kept in
memory.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, TypeVar

from oh_jupyter.locks import file_lock, is_locked_file
from oh_jupyter.storage.webhook.change_table import ChangeTable, DeadLetter, QueuedChange
from oh_jupyter.storage.webhook.changes import Change, Delivery
from oh_jupyter.storage.webhook.database import IN_MEMORY, is_active, process_identity

_Row = TypeVar("_Row")

_log = logging.getLogger(__name__)
_MAX_OVERFLOW_BYTES = 64 << 20
_CHECK_SECONDS = 2.0
_MAX_IDENTITY_BYTES = 200


class OutboxFullError(Exception):
    """A change fits neither on the disk nor in memory."""


class Outbox:
    """Pending changes in a database file; without a path, they last as long as the process."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self._table = ChangeTable(path, path)
        self._number = 0  # of the last change recorded here
        self._reset()

    def _reset(self) -> None:
        self.sender_lock = SenderLock(self.path)
        self._overflow: ChangeTable | None = None
        self._overflow_lock = threading.RLock()  # guards its creation and removal
        self._unsaved: dict[int, QueuedChange] = {}  # with a state not written yet
        self._accepted: dict[int, QueuedChange] = {}  # not deleted yet

    def reset_after_fork(self) -> None:
        """Reset the state in a forked child."""
        self._table.reset_after_fork()
        self._reset()

    def maintain(self) -> None:
        """Write what a full disk did not take, and clean up."""
        if self._accepted:
            self.accept(list(self._accepted.values()))
        if self._unsaved:
            self.reschedule(list(self._unsaved.values()))
        with self._overflow_lock:
            if self._overflow is not None:
                self._move_overflow(self._overflow)
        self._table.database.checkpoint()
        self._table.database.reserve_space()

    def delete_orphans(self) -> None:
        """Delete contents that no change refers to."""
        self._table.delete_orphans()

    def close(self) -> None:
        """Close the database; the next use reopens it, or creates a new temporary one."""
        if self._overflow is None:  # otherwise its changes would be lost
            self._table.close()

    @property
    def undurable(self) -> int:
        """Number of changes in memory because the disk of the outbox is full."""
        with self._overflow_lock:
            return 0 if self._overflow is None else self._overflow.totals()[0]

    def add(self, change: Change) -> int:
        """Record a change that the store is about to apply; return its number."""
        import sqlite3

        try:
            try:
                return self._insert(self._table, change)
            except (sqlite3.OperationalError, OSError):
                self._table.database.free_space()
                return self._insert(self._table, change)
        except (sqlite3.Error, OSError) as error:
            with self._overflow_lock:
                return self._add_overflow(change, error)

    def _insert(self, table: ChangeTable, change: Change, *, beside: bool = True) -> int:
        # Numbers are times, so changes on disk and in memory have one order.
        self._number = table.insert(change, self._next_number(), beside=beside)
        return self._number

    def _next_number(self) -> int:
        return max(time.time_ns(), self._number + 1)

    def _add_overflow(self, change: Change, reason: Exception) -> int:
        if self._overflow is None:
            _log.warning(
                "The outbox cannot keep changes on disk (%s); they are kept in memory until it can",
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
        """Move the changes in memory to the disk, if it has space again."""
        import sqlite3

        try:
            self._table.take_over(overflow)
        except (sqlite3.Error, OSError):
            return
        self._overflow = None
        overflow.close()
        _log.warning("The outbox keeps changes on disk again")

    def add_dead(self, change: Change, reason: str) -> None:
        """Record a change that cannot be kept, so that users see the loss."""
        with self._overflow_lock:
            self._number = self._next_number()
            self._opened_overflow().insert_dead(change, self._number, reason)

    def mark_done(self, numbers: Iterable[int]) -> None:
        """Record that the store has applied these changes."""
        numbers = list(numbers)
        self._each(lambda table: table.mark_done(numbers))

    def pending(self) -> list[QueuedChange]:
        """Return the pending changes, oldest first."""
        changes = self._collect(ChangeTable.pending)
        changes.sort(key=lambda change: change.number)
        if self._unsaved or self._accepted:
            changes = [
                self._unsaved.get(change.number, change)
                for change in changes
                if change.number not in self._accepted
            ]
        return changes

    @contextlib.contextmanager
    def payload(self, number: int) -> Iterator[bytes | IO[bytes] | None]:
        """Yield the contents, as a file if they are large; None if they are gone."""
        contents = None
        with self._tables() as tables:
            for table in tables:
                contents = table.fetch(number) if contents is None else contents
        with contextlib.nullcontext() if isinstance(contents, bytes | None) else contents:
            yield contents

    def remove(self, numbers: Sequence[int]) -> None:
        """Delete changes that need no report."""
        if numbers:
            self._each(lambda table: table.delete(numbers))

    def accept(self, changes: Sequence[QueuedChange]) -> None:
        """Delete accepted changes, and mark the dead letters that they supersede."""
        import sqlite3

        self._accepted.update((change.number, change) for change in changes)
        try:
            self._each(lambda table: table.delete_accepted(changes))
        except sqlite3.Error:
            # This frees space for the next attempt.
            numbers = [change.number for change in changes]
            self._each(lambda table: table.delete_payloads(numbers))
            return
        for change in changes:
            self._accepted.pop(change.number, None)
            self._unsaved.pop(change.number, None)

    def reschedule(self, changes: Sequence[QueuedChange]) -> None:
        """Record the attempts, the request and the due time of changes."""
        import sqlite3

        self._unsaved.update((change.number, change) for change in changes)
        with contextlib.suppress(sqlite3.Error):
            self._each(lambda table: table.reschedule(changes))
            for change in changes:
                self._unsaved.pop(change.number, None)

    def give_up(self, changes: Sequence[QueuedChange], keep_contents: bool = True) -> None:
        """Turn changes into dead letters."""
        self._each(lambda table: table.give_up(changes, keep_contents))
        for change in changes:
            self._unsaved.pop(change.number, None)

    def totals(self) -> tuple[int, int]:
        """Return the number of pending changes and the size of their contents."""
        if self._accepted:
            pending = self.pending()
            return len(pending), sum(change.size for change in pending)
        with self._tables() as tables:
            counts, sizes = zip(*(table.totals() for table in tables), strict=True)
        return sum(counts), sum(sizes)

    def last_number(self) -> int:
        """Return the number of the newest pending change; 0 if there is none."""
        with self._tables() as tables:
            return max(table.last_number() for table in tables)

    def deliveries(self) -> list[Delivery]:
        """Return the undelivered changes, oldest first."""
        pending = self.pending()
        newest = {change.key: change.number for change in pending}
        deliveries = [(change.number, _waiting(change)) for change in pending]
        for letter in self._dead_letters():
            superseded = bool(letter.superseded) or newest.get(letter.key, 0) > letter.number
            deliveries.append((letter.number, _dead(letter, superseded)))
        return [delivery for _, delivery in sorted(deliveries, key=lambda pair: pair[0])]

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
        first = self._next_number()
        self._number = first + len(numbers)
        self._each(lambda table: table.requeue(numbers, first))
        return len(numbers)

    def discard(self, ids: Collection[str]) -> int:
        """Delete the named dead letters, or all; return their number."""
        numbers = [letter.number for letter in self._dead_letters() if not ids or letter.id in ids]
        self._each(lambda table: table.delete_dead(numbers))
        return len(numbers)

    def _dead_letters(self) -> list[DeadLetter]:
        letters = self._collect(ChangeTable.dead_letters)
        return sorted(letters, key=lambda letter: letter.number)

    def _collect(self, read: Callable[[ChangeTable], Iterable[_Row]]) -> list[_Row]:
        with self._tables() as tables:
            return [row for table in tables for row in read(table)]

    @contextlib.contextmanager
    def _tables(self) -> Iterator[list[ChangeTable]]:
        """Yield the tables, while no change moves from one to the other."""
        with self._overflow_lock:
            yield [self._table] if self._overflow is None else [self._table, self._overflow]

    def _each(self, write: Callable[[ChangeTable], None]) -> None:
        with self._tables() as tables:
            # The table in memory first, which cannot fail.
            for table in reversed(tables):
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
    """Lock of the process that sends; other processes can take it from a stopped one."""

    def __init__(self, outbox: str | None) -> None:
        self._path = None if outbox is None else outbox + "-turn"
        self._holding = contextlib.ExitStack()
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Wait until no other process sends."""
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
        with contextlib.suppress(OSError):  # full disk: others cannot detect that we are stopped
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, process_identity().encode())

    def is_held(self) -> bool:
        """Return whether it is still held; another process may have taken it."""
        if self._path is None:
            return True
        return self._descriptor is not None and is_locked_file(self._path, self._descriptor)

    def release(self) -> None:
        """Release the lock."""
        self._descriptor = None
        self._holding.close()

    def _take_from_stopped(self) -> None:
        assert self._path is not None
        with file_lock(self._path + "-takeover"):
            holder = _read_identity(self._path)
            if holder and not is_active(holder):
                # Its lock stays on the old file; when it resumes, it detects the loss.
                with contextlib.suppress(OSError):
                    os.unlink(self._path)


def _read_identity(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_IDENTITY_BYTES).decode("ascii", "replace")
    except OSError:
        return ""
