"""The journal of checkpoints: a line of JSON for each start and end."""

from __future__ import annotations

import contextlib
import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from oh_jupyter.checkpoints.snapshot import Snapshot
from oh_jupyter.checkpoints.steps import Position

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
    begin: Snapshot
    at: Position
    extra: dict[str, Any]
    is_open: bool = False
    owner: str = ""


_MAX_APPENDED = 16
"""Lines after which the file is rewritten: a turn adds two in each of its pauses."""


class CheckpointJournal:
    """A file of checkpoints; the last line with an id counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._appended = 0

    def read(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first; raise OSError if the file is unreadable."""
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return []
        entries: dict[int, Checkpoint] = {}
        for line in text.splitlines():
            # A process may have died while it wrote the last line.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = _parse(json.loads(line))
                entries[entry.id] = entry
        return list(entries.values())

    def append(self, entry: Checkpoint) -> None:
        """Add a line, after ending the partial line of a process that died.

        After a few lines, those that no longer count are removed. The caller holds the lock.
        """
        with open(self._path, "a", encoding="utf-8", opener=_open_private) as file:
            file.write(f"\n{json.dumps(asdict(entry))}\n")
        self._appended += 1
        if self._appended == _MAX_APPENDED:
            self.replace(self.read())

    def replace(self, entries: Iterable[Checkpoint]) -> None:
        """Replace the file at once. The caller holds the lock."""
        fresh = self._path.with_suffix(".new")
        with open(fresh, "w", encoding="utf-8", opener=_open_private) as file:
            file.writelines(f"{json.dumps(asdict(entry))}\n" for entry in entries)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._appended = 0


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


def _parse(fields: dict[str, Any]) -> Checkpoint:
    places = {"begin": Snapshot(*fields["begin"]), "at": Position(*fields["at"])}
    return Checkpoint(**{**fields, **places})


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
