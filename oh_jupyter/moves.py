"""Moves of files by a person in Jupyter.

The server records them for the user's kernels, which would otherwise mistake them for an agent's
deletions and new files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import time

from oh_jupyter.config import state_home

MAX_MOVES = 1000


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
    """Append a move to the journal, which is trimmed at twice the limit."""
    journal = _journal()
    line = json.dumps(asdict(Move(time(), _real(source), _real(target))))
    journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(journal, "a", encoding="utf-8", opener=_open_private) as file:
        file.write(f"{line}\n")
    lines = journal.read_text("utf-8").splitlines(keepends=True)
    if len(lines) >= 2 * MAX_MOVES:
        fresh = journal.with_suffix(".new")
        with open(fresh, "w", encoding="utf-8", opener=_open_private) as file:
            file.writelines(lines[-MAX_MOVES:])
        fresh.replace(journal)


def moves(since: float) -> list[Move]:
    """Return the moves after a time in seconds since the epoch, oldest first."""
    journal = _journal()
    try:
        status = journal.stat()
        known = _load(journal, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        return []
    return [move for move in known if move.time >= since]


@lru_cache(maxsize=1)
def _load(journal: Path, *_version: int) -> list[Move]:
    loaded = []
    for line in journal.read_text("utf-8").splitlines():
        with suppress(ValueError, TypeError):  # the server died while it wrote
            loaded.append(Move(**json.loads(line)))
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


def _journal() -> Path:
    return state_home() / "moves.jsonl"


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
