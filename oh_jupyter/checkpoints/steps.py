"""Steps of agents and what each changed, as the rows of one workspace in a ledger."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from oh_jupyter.checkpoints.disk import Kind, State
from oh_jupyter.checkpoints.writers import Job
from oh_jupyter.errors import CheckpointError, LedgerError
from oh_jupyter.state.ledger import Ledger


class WorkspaceRows:
    """The rows of one workspace, which all of the user's processes share.

    Attributes:
        workspace: The value of their column ``workspace``.
    """

    def __init__(self, ledger: Ledger, workspace: Path) -> None:
        self.workspace = os.fsencode(workspace)
        self._ledger = ledger

    def select(self, query: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query; its parameter ``:workspace`` is set.

        Raises:
            CheckpointError: The ledger cannot be read.
        """
        with self._errors():
            return self._ledger.rows(query, {"workspace": self.workspace, **(values or {})})

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction, or as a part of that around it.

        Raises:
            CheckpointError: The ledger cannot be written; nothing of the block was.
        """
        with self._errors(), self._ledger.transaction() as connection:
            yield connection

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        """Insert one row; return its number.

        Raises:
            CheckpointError: The ledger cannot be written.
        """
        with self._errors():
            return self._ledger.insert(statement, values)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except LedgerError as error:
            workspace = os.fsdecode(self.workspace)
            raise CheckpointError(
                f"Agents' turns in {workspace!r} are not recorded now, and files stay as they are. "
                f"{error}"
            ) from error


def storable(text: str) -> str:
    """Replace lone surrogates, which a database cannot store."""
    return text.encode("utf-8", "replace").decode()


Author = Literal["agent", "others", "unsure", "rewind"]


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
    """The steps and writes of one workspace."""

    def __init__(self, rows: WorkspaceRows) -> None:
        self._rows = rows

    def begin(self, turn: int, owner: str, label: str) -> Step:
        """Add a step that begins now."""
        began, label = time.time(), storable(label)
        id = self._rows.insert(
            "INSERT INTO steps(workspace, turn, owner, label, began) VALUES (?, ?, ?, ?, ?)",
            (self._rows.workspace, turn, owner, label, began),
        )
        return Step(id, turn, owner, label, began, None)

    def end(self, steps: Iterable[int]) -> None:
        """Record the end of steps."""
        now = time.time()
        rows = [(now, step, self._rows.workspace) for step in steps]
        if rows:
            with self._rows.transaction() as connection:
                connection.executemany(
                    "UPDATE steps SET ended = ? WHERE id = ? AND workspace = ?", rows
                )

    def add(self, writes: Iterable[Write], recorder: str) -> None:
        """Add writes, in the order of time, as seen by the process with a token."""
        now = time.time()
        rows = [
            (
                *(self._rows.workspace, now, os.fsencode(each.path), each.step, each.turn),
                *(each.author, _text(each.old), _text(each.new), each.reason, each.is_known),
                recorder,
            )
            for each in writes
        ]
        if rows:
            with self._rows.transaction() as connection:
                connection.executemany(
                    "INSERT INTO writes(workspace, time, path, step, turn, author, old, new, "
                    "reason, is_known, recorder) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    rows,
                )

    def position(self) -> Position:
        """Return the current position."""
        # One query each, because a ledger may have one of the tables only.
        return Position(self._last("writes"), self._last("steps"))

    def _last(self, table: str) -> int:
        rows = self._rows.select(f"SELECT coalesce(max(id), 0) FROM {table}")
        return int(rows[0][0]) if rows else 0

    def writes(self, after: int = 0, *, turns: Iterable[int] | None = None) -> list[Write]:
        """Return the writes after one, in the order of time, of all turns or some."""
        condition = "+workspace = :workspace"  # all later rows are fewer than all of a workspace
        if turns is not None:
            numbers = ",".join(map(str, map(int, turns)))
            condition = f"workspace = :workspace AND turn IN ({numbers})"
        rows = self._rows.select(
            "SELECT path, old, new, author, step, turn, reason, is_known, id, time, recorder "
            f"FROM writes WHERE {condition} AND id > :after ORDER BY id",
            {"after": after},
        )
        return [_write(row) for row in rows]

    def files(self) -> dict[int, list[str]]:
        """Return the paths that agents changed, by turn."""
        files: dict[int, list[str]] = {}
        for turn, path in self._rows.select(
            "SELECT DISTINCT turn, path FROM writes "
            "WHERE workspace = :workspace AND author = 'agent' ORDER BY path"
        ):
            files.setdefault(turn, []).append(os.fsdecode(path))
        return files

    def steps(self, *, owner: str | None = None, is_open: bool = False) -> list[Step]:
        """Return steps, oldest first: of all processes or one, all of them or those that run."""
        conditions = ["workspace = :workspace"]
        conditions += [] if owner is None else ["owner = :owner"]
        conditions += ["ended IS NULL"] if is_open else []
        rows = self._rows.select(
            "SELECT id, turn, owner, label, began, ended FROM steps WHERE "
            f"{' AND '.join(conditions)} ORDER BY id",
            {"owner": owner},
        )
        return [Step(*row) for row in rows]

    def confirm(self, write: int) -> None:
        """Record that a planned write was made."""
        with self._rows.transaction() as connection:
            connection.execute("UPDATE writes SET is_known = TRUE WHERE id = ?", (write,))

    def remove(self, writes: Iterable[int]) -> None:
        """Remove writes by their numbers."""
        rows = [(id,) for id in writes]
        if rows:
            with self._rows.transaction() as connection:
                connection.executemany("DELETE FROM writes WHERE id = ?", rows)

    def jobs(self) -> list[tuple[str, Job]]:
        """Return the processes that live on after their steps, each with its owner's token."""
        rows = self._rows.select(
            "SELECT owner, pid, started, step, turn, label FROM jobs WHERE workspace = :workspace"
        )
        return [(owner, Job(*facts)) for owner, *facts in rows]

    def share_jobs(self, owner: str, new: Collection[Job], ended: Collection[Job]) -> None:
        """Add and remove processes that live on after their steps."""
        key = self._rows.workspace, owner
        with self._rows.transaction() as connection:
            connection.executemany(
                "DELETE FROM jobs WHERE workspace = ? AND owner = ? AND pid = ? AND step = ?",
                [(*key, job.pid, job.step) for job in ended],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO jobs(workspace, owner, pid, started, step, turn, label) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (*key, job.pid, job.started, job.step, job.turn, storable(job.label))
                    for job in new
                ],
            )

    def remove_jobs_of(self, owners: Iterable[str]) -> None:
        """Remove the processes of dead owners."""
        with self._rows.transaction() as connection:
            connection.executemany(
                "DELETE FROM jobs WHERE workspace = ? AND owner = ?",
                [(self._rows.workspace, owner) for owner in owners],
            )

    def remove_orphans(self) -> None:
        """Remove the steps and writes of turns without a checkpoint."""
        with self._rows.transaction() as connection:
            for table in ("writes", "steps"):
                connection.execute(
                    f"DELETE FROM {table} WHERE workspace = :workspace AND turn NOT IN "
                    "(SELECT id FROM checkpoints WHERE workspace = :workspace)",
                    {"workspace": self._rows.workspace},
                )

    def contents(self) -> set[str]:
        """Return the ids of all contents that writes name."""
        ids: set[str] = set()
        rows = self._rows.select("SELECT old, new FROM writes WHERE workspace = :workspace")
        for old, new in rows:
            ids.update(state.blob for state in (_state(old), _state(new)) if state and state.blob)
        return ids


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
