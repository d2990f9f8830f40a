"""Evidence of an agent's work in a turn, and of the life of the turn's process.

A process that starts turns holds a lock, which the system releases however the process dies. Beside
it is a file with the times of the agent's work, whose last line counts. Its modification time shows
when the process was last alive: later changes are not the turn's.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
import weakref
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oh_jupyter.events.json import encode_json
from oh_jupyter.locks import file_lock
from oh_jupyter.moves import CLOCK_SECONDS, last_edits, save_times

MAX_RECORD_BYTES = 256 * 1024
"""Size at which the notes are replaced by the last one."""


@dataclass(frozen=True)
class Work:
    """When an agent worked during a turn, and which files it edited itself.

    Attributes:
        turn: Number of the turn.
        spans: Starts and ends in seconds since the epoch; an end is None while the work continues.
        edited: Real paths with the spans in which their changes and saves are the agent's.
        notebook: Real path of the notebook that people's tabs save, or "".
        owner: Token of the process of the turn.
        begin: When the turn began, in seconds since the epoch; 0 for the start of its work.
    """

    turn: int = 0
    spans: list[tuple[float, float | None]] = field(default_factory=list)
    edited: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    notebook: str = ""
    owner: str = ""
    begin: float = 0.0

    def is_of_turn(self, path: Path, changed: float) -> bool:
        """Return whether a change is the agent's, judged by its time and path."""
        real_path = os.path.join(os.path.realpath(path.parent), path.name)
        if real_path == self.notebook:
            return real_path in self.edited
        edits = self.edited.get(real_path, [])
        start = min((begin for begin, _ in (*self.spans, *edits)), default=0.0)
        others = last_edits(real_path, self.begin or start + CLOCK_SECONDS)
        own = others.pop(self.owner, 0.0) if self.owner else 0.0
        if "" in others or self._is_saved_by_person(real_path, start, edits):
            return False  # the file holds what the person wrote, even if the agent changed it later
        if any(own < time and changed <= time for time in others.values()):
            return False  # another agent's edit is its last change
        if any(changed <= end for _, end in edits):
            return True
        return any(
            begin <= changed and (end is None or changed <= end) for begin, end in self.spans
        )

    @staticmethod
    def _is_saved_by_person(path: str, start: float, edits: list[tuple[float, float]]) -> bool:
        """Return whether Jupyter saved a file during the turn, and not an edit of the agent."""
        return any(
            start <= time and not any(begin <= time <= end for begin, end in edits)
            for time in save_times(path)
        )


class Owner:
    """The lock of a process on its turns."""

    def __init__(self, directory: Path) -> None:
        """Take a new lock, which is released with this object at the latest."""
        self.token = uuid.uuid4().hex
        self._record = _record(directory, self.token)
        stack = contextlib.ExitStack()
        stack.enter_context(file_lock(_lock(directory, self.token), 0))
        self.close = weakref.finalize(self, stack.close)

    def note(self, work: Work) -> None:
        """Record the agent's work so far; the modification time shows that the process lives."""
        note = encode_json(vars(work))
        # Some filesystems write a replaced file to the disk at once, which takes as long as a cell.
        with open(self._record, "ab", buffering=0) as notes:
            if notes.tell() < MAX_RECORD_BYTES:
                notes.write(b"\n" + note)
                return
        fresh = self._record.with_suffix(".new")
        fresh.write_bytes(note)
        fresh.replace(self._record)


def is_alive(directory: Path, token: str) -> bool:
    """Return whether the process of an owner still runs."""
    lock = _lock(directory, token)
    if not token or not lock.exists():
        return False
    try:
        with file_lock(lock, 0):
            return False
    except TimeoutError:
        return True


def evidence(directory: Path, token: str, turns: Collection[int]) -> tuple[Work, float] | None:
    """Return an owner's notes on any of some turns and when it was last alive, or None."""
    record = _record(directory, token)
    try:
        fields = _last_note(record)
        work = Work(**{**fields, "spans": [(begin, end) for begin, end in fields["spans"]]})
        return (work, record.stat().st_mtime) if work.turn in turns else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _last_note(record: Path) -> dict[str, Any]:
    """Return the last whole note; a process may die, or the disk be full, while it writes one."""
    for note in reversed(record.read_bytes().split(b"\n")):
        with contextlib.suppress(ValueError):
            return dict(json.loads(note))
    raise ValueError(f"{record} has no whole note")


def forget(directory: Path, token: str) -> None:
    """Remove the files of a dead owner."""
    if token:
        for path in (_lock(directory, token), _record(directory, token)):
            path.unlink(missing_ok=True)


def _lock(directory: Path, token: str) -> Path:
    return directory / "owners" / f"{token}.lock"


def _record(directory: Path, token: str) -> Path:
    return directory / "owners" / f"{token}.json"
