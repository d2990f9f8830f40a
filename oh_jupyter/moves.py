"""Moves and saves of files by a person, and edits by persons and agents.

The server records moves and saves, each kernel the edits in its editor. Otherwise the user's
kernels would mistake them for changes of another agent that works at the same time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import time
from typing import Any

from oh_jupyter.config import state_home
from oh_jupyter.locks import file_lock

MAX_BYTES = 256 * 1024
"""Size at which the older half of a journal is dropped."""

LOCK_SECONDS = 2.0
"""How long a record waits for those of other processes."""

CLOCK_SECONDS = 0.1
"""How much coarser than the clock the times of files may be."""


@dataclass(frozen=True)
class Move:
    """A renamed file or directory.

    Attributes:
        time: Time of the record in seconds since the epoch.
        source: Absolute path before.
        target: Absolute path after.
    """

    time: float
    source: str
    target: str


def note_move(source: str, target: str) -> None:
    """Record a move."""
    _append("moves", asdict(Move(time(), _real(source), _real(target))))


def note_save(path: str) -> None:
    """Record a save in Jupyter right after it."""
    _append("saves", {"time": time(), "path": _real(path)})


def note_edit(path: str, owner: str = "") -> None:
    """Record an edit in the file editor right after it.

    ``owner`` is the token of the process in whose turn an agent made it, "" for a person's edit.
    """
    _append("edits", {"time": time(), "path": _real(path), "owner": owner})


def moves(since: float) -> list[Move]:
    """Return the moves after a time in seconds since the epoch, oldest first."""
    known = [Move(**record) for records in _records("moves").values() for record in records]
    return sorted((move for move in known if move.time >= since), key=lambda move: move.time)


def save_times(path: str) -> list[float]:
    """Return the times of the saves of a real path, oldest first."""
    return [record["time"] for record in _records("saves").get(path, [])]


def last_edits(path: str, since: float) -> dict[str, float]:
    """Return the time of the last edit of a real path by each owner, of those since a time."""
    records = _records("edits").get(path, [])
    return {each["owner"]: each["time"] for each in records if each["time"] >= since}


def _append(name: str, record: dict[str, Any]) -> None:
    """Append to a journal, and drop its older half if it is too large."""
    journal = _journal(name)
    with file_lock(journal.with_suffix(".lock"), LOCK_SECONDS):
        with open(journal, "a", encoding="utf-8", opener=_open_private) as file:
            file.write(f"{json.dumps(record)}\n")
            size = file.tell()
        if size >= MAX_BYTES:
            lines = journal.read_text("utf-8").splitlines(keepends=True)
            fresh = journal.with_suffix(".new")
            with open(fresh, "w", encoding="utf-8", opener=_open_private) as file:
                file.writelines(lines[len(lines) // 2 :])
            fresh.replace(journal)


def _records(name: str) -> Mapping[str, list[dict[str, Any]]]:
    """Return the records of a journal by path, or source of a move; each path's oldest first."""
    journal = _journal(name)
    try:
        status = journal.stat()
        return _load(journal, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=3)
def _load(journal: Path, *_version: int) -> Mapping[str, list[dict[str, Any]]]:
    loaded: dict[str, list[dict[str, Any]]] = {}
    for line in journal.read_text("utf-8").splitlines():
        with suppress(ValueError):  # a process died while it wrote
            record = json.loads(line)
            path = record.get("path") or record.get("source")
            loaded.setdefault(path, []).append(record)
    return loaded


def moved_to(path: str, moves: Sequence[Move]) -> str:
    """Return the path after some moves, oldest first, of it or of a parent directory."""
    for move in moves:
        if path == move.source:
            path = move.target
        elif path.startswith(move.source + os.sep):
            path = move.target + path[len(move.source) :]
    return path


def _real(path: str) -> str:
    # A link itself can be moved.
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _journal(name: str) -> Path:
    return state_home() / f"{name}.jsonl"


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
