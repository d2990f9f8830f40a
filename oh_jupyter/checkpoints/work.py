"""Evidence of what an agent did in a turn, and of the process that the turn ends with.

A process that begins turns holds a lock, which the system frees however the process dies. Beside
it is a file that says when the agent was at work. Its time of change says when the process was
last alive: whatever changed later is not the turn's.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
import weakref
from dataclasses import asdict, dataclass, field
from pathlib import Path

from oh_jupyter.locks import file_lock


@dataclass(frozen=True)
class Work:
    """When an agent was at work in a turn, and which files it certainly changed itself.

    Attributes:
        turn: Number of the turn.
        spans: Beginnings and ends in seconds since the epoch; None for what goes on.
        edited: Real paths with the time until which their changes are the agent's.
        notebook: Real path of the notebook that people's tabs save, or "".
    """

    turn: int = 0
    spans: list[tuple[float, float | None]] = field(default_factory=list)
    edited: dict[str, float] = field(default_factory=dict)
    notebook: str = ""

    def is_of_turn(self, path: Path, changed: float) -> bool:
        """Tell whether a change is the agent's, as far as its time and its place show."""
        place = os.path.join(os.path.realpath(path.parent), path.name)
        if place == self.notebook:
            return place in self.edited
        if changed <= self.edited.get(place, 0.0):
            return True
        return any(
            begin <= changed and (end is None or changed <= end) for begin, end in self.spans
        )


class Owner:
    """The lock of a process on the turns that it begins."""

    def __init__(self, directory: Path) -> None:
        """Take a new lock, which is freed with this object at the latest."""
        self.token = uuid.uuid4().hex
        self._directory = directory
        stack = contextlib.ExitStack()
        stack.enter_context(file_lock(_lock(directory, self.token), 0))
        self.close = weakref.finalize(self, stack.close)

    def note(self, work: Work) -> None:
        """Write down what the agent has done so far; the process is alive at this moment."""
        place = _record(self._directory, self.token)
        fresh = place.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(work)), "utf-8")
        fresh.replace(place)


def is_alive(directory: Path, token: str) -> bool:
    """Tell whether the process of an owner still runs."""
    lock = _lock(directory, token)
    if not token or not lock.exists():
        return False
    try:
        with file_lock(lock, 0):
            return False
    except TimeoutError:
        return True


def evidence(directory: Path, token: str, turn: int) -> tuple[Work, float] | None:
    """Read what an owner noted of a turn, and when it was last alive; None without a note."""
    place = _record(directory, token)
    try:
        fields = json.loads(place.read_text("utf-8"))
        work = Work(**{**fields, "spans": [(begin, end) for begin, end in fields["spans"]]})
        return (work, place.stat().st_mtime) if work.turn == turn else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def forget(directory: Path, token: str) -> None:
    """Remove the files of an owner that is gone."""
    if token:
        for place in (_lock(directory, token), _record(directory, token)):
            place.unlink(missing_ok=True)


def _lock(directory: Path, token: str) -> Path:
    return directory / "owners" / f"{token}.lock"


def _record(directory: Path, token: str) -> Path:
    return directory / "owners" / f"{token}.json"
