"""The journal of checkpoints: turns, marks and rewinds in the order of time."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from oh_jupyter.checkpoints.snapshot import Details, Snapshot, StoredSnapshot
from oh_jupyter.checkpoints.steps import Position, WorkspaceRows
from oh_jupyter.errors import CheckpointError

Kind = Literal["turn", "mark", "rewind"]


@dataclass(frozen=True)
class Checkpoint:
    """A moment to which one can return.

    Attributes:
        id: Number within the workspace, counted from 1.
        time: When it was made, in seconds since the epoch.
        kind: ``turn`` of an agent, ``mark`` of a person, or ``rewind``.
        label: The prompt, the first Action of a turn, or the label of a mark.
        who: Who acted in the turn, such as the name of an agent.
        begin: The files at that moment.
        at: The position in the log of steps at that moment.
        extra: Further facts from its maker: ``target`` of a rewind; of a turn, ``files`` that it
            changed, ``cells`` that it ran, ``changed_variables``, and ``part_of``, the turn that it
            continues.
        is_open: Whether the turn continues, or the rewind is not complete.
        owner: Token of the process that started it.
    """

    id: int
    time: float
    kind: Kind
    label: str
    who: str
    begin: StoredSnapshot
    at: Position
    extra: dict[str, Any]
    is_open: bool = False
    owner: str = ""


_COLUMNS = "id, time, kind, label, who, tree, details, last_write, last_step, extra, is_open, owner"
_SELECT = f"SELECT {_COLUMNS} FROM checkpoints WHERE workspace = :workspace"


class CheckpointJournal:
    """The checkpoints of one workspace. Who changes them holds the lock of the repository."""

    def __init__(self, rows: WorkspaceRows) -> None:
        self._rows = rows

    def read(self, *, is_open: bool = False) -> list[Checkpoint]:
        """Return the checkpoints, oldest first: all of them or those that are open."""
        condition = " AND is_open" if is_open else ""
        return [_checkpoint(row) for row in self._rows.select(f"{_SELECT}{condition} ORDER BY id")]

    def find(self, id: int) -> Checkpoint | None:
        """Return a checkpoint by its number, or None."""
        rows = self._rows.select(f"{_SELECT} AND id = :id", {"id": id})
        return _checkpoint(rows[0]) if rows else None

    def last(self) -> Checkpoint | None:
        """Return the newest checkpoint, or None."""
        rows = self._rows.select(f"{_SELECT} ORDER BY id DESC LIMIT 1")
        return _checkpoint(rows[0]) if rows else None

    def ids(self) -> list[int]:
        """Return the numbers of all checkpoints, oldest first."""
        query = "SELECT id FROM checkpoints WHERE workspace = :workspace ORDER BY id"
        return [id for (id,) in self._rows.select(query)]

    def snapshot(self, entry: Checkpoint) -> Snapshot:
        """Return the files at a checkpoint.

        Raises:
            CheckpointError: They were removed, or cannot be read.
        """
        rows = self._rows.select(
            "SELECT contents FROM snapshot_details "
            "WHERE workspace = :workspace AND digest = :digest",
            {"digest": entry.begin.details},
        )
        if not rows:
            raise CheckpointError(
                f"Checkpoint {entry.id} was removed meanwhile. Rewind to another one; %oh_rewind "
                "lists them."
            )
        return Snapshot(entry.begin.tree, Details.from_json(rows[0][0]))

    def add(self, entry: Checkpoint, details: str) -> None:
        """Add a checkpoint with the details of its snapshot as JSON."""
        values = (
            *(self._rows.workspace, entry.id, entry.time, entry.kind, entry.label, entry.who),
            *(*entry.begin, *entry.at, json.dumps(entry.extra), entry.is_open, entry.owner),
        )
        with self._rows.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO snapshot_details VALUES (?, ?, ?)",
                (self._rows.workspace, entry.begin.details, details),
            )
            connection.execute(
                f"INSERT INTO checkpoints(workspace, {_COLUMNS}) "
                f"VALUES ({', '.join('?' * len(values))})",
                values,
            )

    def update(self, entry: Checkpoint) -> None:
        """Replace what may change of a checkpoint: its facts, its owner, and whether it is open."""
        with self._rows.transaction() as connection:
            connection.execute(
                "UPDATE checkpoints SET extra = ?, is_open = ?, owner = ? "
                "WHERE workspace = ? AND id = ?",
                (
                    *(json.dumps(entry.extra), entry.is_open, entry.owner),
                    *(self._rows.workspace, entry.id),
                ),
            )

    def remove_before(self, id: int) -> None:
        """Remove the checkpoints with lower numbers, except those that are open."""
        with self._rows.transaction() as connection:
            connection.execute(
                "DELETE FROM checkpoints WHERE workspace = ? AND id < ? AND NOT is_open",
                (self._rows.workspace, id),
            )
            connection.execute(
                "DELETE FROM snapshot_details WHERE workspace = :workspace AND digest NOT IN "
                "(SELECT details FROM checkpoints WHERE workspace = :workspace)",
                {"workspace": self._rows.workspace},
            )

    def clear(self) -> None:
        """Remove all checkpoints."""
        with self._rows.transaction() as connection:
            for table in ("checkpoints", "snapshot_details"):
                connection.execute(
                    f"DELETE FROM {table} WHERE workspace = ?", (self._rows.workspace,)
                )


def _checkpoint(row: tuple[Any, ...]) -> Checkpoint:
    id, time, kind, label, who, tree, details, write, step, extra, is_open, owner = row
    begin, at = StoredSnapshot(tree, details), Position(write, step)
    facts = json.loads(extra), bool(is_open), owner
    return Checkpoint(id, time, kind, label, who, begin, at, *facts)


def standing_turns(entries: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Return the turns that no rewind of all files has undone, oldest first.

    Rewinds of one file, or of variables alone, undo no whole turn.
    """
    ids = [entry.id for entry in entries]
    standing: list[Checkpoint] = []
    standing_before: list[list[Checkpoint]] = []
    for entry in entries:
        standing_before.append(standing)
        if entry.kind == "turn":
            standing = [*standing, entry]
        elif entry.kind == "rewind" and not {"path", "variables"} & entry.extra.keys():
            standing = standing_before[bisect_left(ids, entry.extra["target"])]
    return standing


def merged_turns(entries: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Merge the parts of each turn, between which others changed files, into its first entry."""
    merged: dict[int, Checkpoint] = {}
    for entry in entries:
        first = merged.get(entry.extra.get("part_of", 0))
        if first is None:
            merged[entry.id] = entry
            continue
        extra = {
            **first.extra,
            **{name: _both(first, entry, name) for name in ("files", "changed_variables")},
            "cells": first.extra.get("cells", 0) + entry.extra.get("cells", 0),
        }
        merged[first.id] = replace(first, is_open=entry.is_open, extra=extra)
    return list(merged.values())


def _both(first: Checkpoint, second: Checkpoint, name: str) -> list[str]:
    return sorted({*first.extra.get(name, ()), *second.extra.get(name, ())})
