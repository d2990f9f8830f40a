"""Steps of agents and what each changed, in a database that the user's kernels share."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from oh_jupyter.checkpoints.disk import Kind, State
from oh_jupyter.errors import CheckpointError

Author = Literal["agent", "others", "unsure", "rewind"]

_BUSY_SECONDS = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS steps(
    id INTEGER PRIMARY KEY AUTOINCREMENT, turn INTEGER NOT NULL, owner TEXT NOT NULL,
    label TEXT NOT NULL, began REAL NOT NULL, ended REAL);
CREATE TABLE IF NOT EXISTS writes(
    id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, path BLOB NOT NULL,
    step INTEGER NOT NULL, turn INTEGER NOT NULL, author TEXT NOT NULL,
    old TEXT, new TEXT, reason TEXT NOT NULL, is_known INTEGER NOT NULL,
    recorder TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS writes_of_turn ON writes(turn);
"""


class Position(NamedTuple):
    """A moment between the writes: the last numbers of a write and of a step until then."""

    write: int = 0
    step: int = 0


class Step(NamedTuple):
    """A piece of work that may change files.

    Attributes:
        id: Its number.
        turn: The turn that it belongs to; 0 for the work of a person.
        owner: Token of its process.
        label: What it does, such as a command.
        began: Seconds since the epoch.
        ended: The same; None while it runs.
    """

    id: int
    turn: int
    owner: str
    label: str
    began: float
    ended: float | None


class Write(NamedTuple):
    """One change of a path.

    Attributes:
        path: Relative to the workspace.
        old: Its state before.
        new: Its state after.
        author: ``agent``, ``others``, ``rewind``, or ``unsure`` if that cannot be decided.
        step: The step in which it happened, 0 for none.
        turn: The turn, or the rewind.
        reason: Why it is unsure, or why the old contents are not stored.
        is_known: Whether the operation that made it reported it, or a rewind has made it.
        id: Its number, in order of time.
        time: When it was recorded, in seconds since the epoch.
        recorder: Token of the process that recorded it; another one may record it as well.
    """

    path: str
    old: State | None
    new: State | None
    author: Author
    step: int = 0
    turn: int = 0
    reason: str = ""
    is_known: bool = False
    id: int = 0
    time: float = 0.0
    recorder: str = ""


class StepLog:
    """The database of steps and writes of one workspace."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def exists(self) -> bool:
        """Return whether any step was recorded."""
        return self._connection is not None or self._path.exists()

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def begin(self, turn: int, owner: str, label: str) -> Step:
        """Add a step that begins now."""
        began = time.time()
        with self._transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO steps(turn, owner, label, began) VALUES (?, ?, ?, ?)",
                (turn, owner, label, began),
            )
        assert cursor.lastrowid is not None
        return Step(cursor.lastrowid, turn, owner, label, began, None)

    def end(self, step: int) -> None:
        """Record the end of a step."""
        with self._transaction() as connection:
            connection.execute("UPDATE steps SET ended = ? WHERE id = ?", (time.time(), step))

    def add(self, writes: Iterable[Write], recorder: str) -> None:
        """Add writes, in the order of time, as seen by the process with a token."""
        now = time.time()
        rows = [
            (
                *(now, os.fsencode(each.path), each.step, each.turn, each.author),
                *(_text(each.old), _text(each.new), each.reason, each.is_known, recorder),
            )
            for each in writes
        ]
        if rows:
            with self._transaction() as connection:
                connection.executemany(
                    "INSERT INTO writes(time, path, step, turn, author, old, new, reason, "
                    "is_known, recorder) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    rows,
                )

    def position(self) -> Position:
        """Return the current position."""
        rows = self._select(
            "SELECT (SELECT coalesce(max(id), 0) FROM writes), "
            "(SELECT coalesce(max(id), 0) FROM steps)"
        )
        return Position(*rows[0])

    def writes(self, after: int = 0, *, turns: Iterable[int] | None = None) -> list[Write]:
        """Return the writes after one, in the order of time, of all turns or some."""
        chosen = "" if turns is None else f" AND turn IN ({','.join(map(str, map(int, turns)))})"
        rows = self._select(
            "SELECT path, old, new, author, step, turn, reason, is_known, id, time, recorder "
            "FROM writes "
            f"WHERE id > ?{chosen} ORDER BY id",
            (after,),
        )
        return [_write(row) for row in rows]

    def files(self) -> dict[int, list[str]]:
        """Return the paths that agents changed, by turn."""
        files: dict[int, list[str]] = {}
        for turn, path in self._select(
            "SELECT DISTINCT turn, path FROM writes WHERE author = 'agent' ORDER BY path"
        ):
            files.setdefault(turn, []).append(os.fsdecode(path))
        return files

    def steps(self, *, owner: str | None = None, is_open: bool = False) -> list[Step]:
        """Return steps, oldest first: of all processes or one, all of them or those that run."""
        conditions = ["1"]
        conditions += [] if owner is None else ["owner = :owner"]
        conditions += ["ended IS NULL"] if is_open else []
        rows = self._select(
            "SELECT id, turn, owner, label, began, ended FROM steps WHERE "
            f"{' AND '.join(conditions)} ORDER BY id",
            {"owner": owner},
        )
        return [Step(*row) for row in rows]

    def forget(self, turns: Iterable[int]) -> None:
        """Remove the steps and writes of all turns except some."""
        remaining = ",".join(map(str, map(int, turns)))
        with self._transaction() as connection:
            connection.execute(f"DELETE FROM writes WHERE turn NOT IN ({remaining})")
            connection.execute(f"DELETE FROM steps WHERE turn NOT IN ({remaining})")

    def confirm(self, write: int) -> None:
        """Record that a planned write was made."""
        with self._transaction() as connection:
            connection.execute("UPDATE writes SET is_known = TRUE WHERE id = ?", (write,))

    def remove(self, writes: Iterable[int]) -> None:
        """Remove writes by their numbers."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM writes WHERE id = ?", [(id,) for id in writes])

    def contents(self) -> set[str]:
        """Return the ids of all contents that writes name."""
        ids: set[str] = set()
        for old, new in self._select("SELECT old, new FROM writes"):
            ids.update(state.blob for state in (_state(old), _state(new)) if state and state.blob)
        return ids

    def _select(self, query: str, values: object = ()) -> list[Any]:
        with self._errors(), self._lock:
            return self._open().execute(query, values).fetchall()  # type: ignore[arg-type]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._lock:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CheckpointError(
                f"The steps of agents cannot be recorded in {str(self._path)!r}: {error}. Free "
                "space there, or remove that file to start again: agents' changes until now can "
                "then not be undone, and the workspace stays as it is."
            ) from error

    def _open(self) -> sqlite3.Connection:
        """Return the connection; a forked child opens its own."""
        if self._connection is None or self._process != os.getpid():
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.executescript(
                f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {_SCHEMA}"
            )
            self._connection, self._process = connection, os.getpid()
            # a runtime may be closed after Python's exit handlers
            weakref.finalize(self, _close, connection, self._process).atexit = False
        return self._connection


def _close(connection: sqlite3.Connection, process: int) -> None:
    if process == os.getpid():
        connection.close()


def _text(state: State | None) -> str | None:
    return None if state is None else f"{state.kind} {state.mode} {state.blob}"


def _state(text: str | None) -> State | None:
    if text is None:
        return None
    kind, mode, blob = text.split(" ")
    return State(cast("Kind", kind), int(mode), blob)


def _write(row: tuple[Any, ...]) -> Write:
    path, old, new, author, step, turn, reason, is_known, id, recorded, recorder = row
    states = _state(old), _state(new)
    facts = author, step, turn, reason, bool(is_known), id, recorded, recorder
    return Write(os.fsdecode(path), *states, *facts)
