"""Journal of what people do with files in Jupyter and in the editor of any kernel.

A kernel whose system does not name the process that changed a file learns from it that a change
during an agent's step was a person's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import time
from typing import Literal

from oh_jupyter.config import state_home
from oh_jupyter.locks import file_lock

MAX_BYTES = 256 * 1024
"""Size at which the older half of the journal is dropped."""

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
    """Record a saved file right after it was written."""
    status = os.stat(path)
    contents = ""
    if status.st_size <= MAX_HASHED_BYTES:
        data = Path(path).read_bytes()
        prefix = b"blob %d\0" % len(data)
        contents = hashlib.sha1(prefix + data, usedforsecurity=False).hexdigest()
    _append(PersonsWrite("save", _real(path), status.st_mtime, contents=contents))


def note_delete(path: str) -> None:
    """Record a deletion."""
    _append(PersonsWrite("delete", _real(path), time()))


def note_move(source: str, target: str) -> None:
    """Record a new name of a file or directory."""
    _append(PersonsWrite("move", _real(source), time(), target=_real(target)))


def persons_writes(since: float) -> list[PersonsWrite]:
    """Return the changes since a time in seconds since the epoch, oldest first."""
    journal = _journal()
    try:
        status = journal.stat()
        known = _load(journal, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        return []
    return [write for write in known if write.time >= since]


def moves(since: float) -> list[PersonsWrite]:
    """Return the moves since a time in seconds since the epoch, oldest first."""
    return [write for write in persons_writes(since) if write.kind == "move"]


def moved_to(path: str, moves: Sequence[PersonsWrite]) -> str:
    """Return the path after some moves, oldest first, of it or of a parent directory."""
    for move in moves:
        if path == move.path:
            path = move.target
        elif path.startswith(move.path + os.sep):
            path = move.target + path[len(move.path) :]
    return path


def _append(write: PersonsWrite) -> None:
    """Append a line; if the journal is too large and nobody else does so, drop its older half."""
    journal = _journal()
    line = f"{json.dumps(asdict(write))}\n".encode()
    try:
        descriptor = _open(journal)
    except FileNotFoundError:
        journal.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = _open(journal)
    try:
        os.write(descriptor, line)  # a single append is not interleaved with others
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size >= MAX_BYTES:
        with suppress(TimeoutError), file_lock(journal.with_suffix(".lock"), 0):
            lines = journal.read_bytes().splitlines(keepends=True)
            fresh = journal.with_suffix(".new")
            with open(fresh, "wb", opener=_open_private) as file:
                file.writelines(lines[len(lines) // 2 :])
            fresh.replace(journal)


@lru_cache(maxsize=1)
def _load(journal: Path, *_version: int) -> list[PersonsWrite]:
    return list(_parsed(journal.read_bytes().splitlines()))


def _parsed(lines: Iterable[bytes]) -> Iterable[PersonsWrite]:
    for line in lines:
        with suppress(ValueError, TypeError):  # a process died while it wrote
            yield PersonsWrite(**json.loads(line))


def _real(path: str) -> str:
    # A link itself can be moved.
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _journal() -> Path:
    return state_home() / "writes.jsonl"


def _open(journal: Path) -> int:
    return _open_private(str(journal), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
