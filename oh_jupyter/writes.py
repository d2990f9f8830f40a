"""Journal of what people do with files in Jupyter and in the editor of any kernel.

A kernel whose system does not name the process that changed a file learns from it that a change
during an agent's step was a person's.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Literal

from oh_jupyter.errors import LedgerError
from oh_jupyter.state.shared import open_ledger

_logger = logging.getLogger(__name__)

MAX_ROWS = 2000
"""Number of changes above which the oldest are dropped."""

MAX_HASHED_BYTES = 10 << 20
"""Size above which the contents of a saved file are not identified."""

Kind = Literal["save", "delete", "move"]


@dataclass(frozen=True)
class PersonsWrite:
    """A person's change of a file or directory.

    Attributes:
        kind: What was done.
        path: Absolute path, whose directory is real.
        time: When the file was written, or the change recorded, in seconds since the epoch.
        target: New path of a move, "" otherwise.
        contents: git's id of the saved contents, "" otherwise.
    """

    kind: Kind
    path: str
    time: float
    target: str = ""
    contents: str = ""


def note_save(path: str) -> None:
    """Record a saved file right after it was written; wait for the ledger.

    Raises:
        OSError: The file cannot be read, or, as a LedgerError, the ledger not written.
    """
    status = os.stat(path)
    contents = ""
    if status.st_size <= MAX_HASHED_BYTES:
        data = Path(path).read_bytes()
        prefix = b"blob %d\0" % len(data)
        contents = hashlib.sha1(prefix + data, usedforsecurity=False).hexdigest()
    _add(PersonsWrite("save", _real(path), status.st_mtime, contents=contents))


def note_delete(path: str) -> None:
    """Record a deletion; wait for the ledger, and raise LedgerError."""
    _add(PersonsWrite("delete", _real(path), time()))


def note_move(source: str, target: str) -> None:
    """Record a new name of a file or directory; wait for the ledger, and raise LedgerError."""
    _add(PersonsWrite("move", _real(source), time(), target=_real(target)))


def persons_writes(since: float) -> list[PersonsWrite]:
    """Return the changes since a time in seconds since the epoch, oldest first.

    Raises:
        LedgerError: The ledger cannot be read.
    """
    query = (
        "SELECT kind, path, time, target, contents FROM persons_writes "
        "WHERE time >= ? ORDER BY number"
    )
    return [
        PersonsWrite(kind, os.fsdecode(path), when, os.fsdecode(target), contents)
        for kind, path, when, target, contents in open_ledger().rows(query, (since,))
    ]


def moves(since: float) -> list[PersonsWrite]:
    """Return the moves since a time, oldest first, none if the ledger is unusable."""
    try:
        return [write for write in persons_writes(since) if write.kind == "move"]
    except LedgerError as error:
        _logger.warning("Files that were moved in Jupyter are not recognised: %s", error)
        return []


def moved_to(path: str, moves: Sequence[PersonsWrite]) -> str:
    """Return the path after some moves, oldest first, of it or of a parent directory."""
    for move in moves:
        if path == move.path:
            path = move.target
        elif path.startswith(move.path + os.sep):
            path = move.target + path[len(move.path) :]
    return path


def _add(write: PersonsWrite) -> None:
    """Add a row, and drop the oldest ones."""
    values = (
        *(write.kind, os.fsencode(write.path), write.time),
        *(os.fsencode(write.target), write.contents),
    )
    with open_ledger().transaction() as connection:
        number = connection.execute(
            "INSERT INTO persons_writes(kind, path, time, target, contents) VALUES (?, ?, ?, ?, ?)",
            values,
        ).lastrowid
        assert number is not None
        connection.execute("DELETE FROM persons_writes WHERE number <= ?", (number - MAX_ROWS,))


def _real(path: str) -> str:
    # A link itself can be moved.
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
