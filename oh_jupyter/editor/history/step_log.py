"""Steps of a timeline in a file that only grows, one line of JSON for each step.

An index says which lines count, so an interrupted append changes nothing, and an edit costs the
same after ten steps as after ten thousand.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oh_jupyter.editor.history.steps import Step

_PREFIX = "steps-"
_SKIPPED_LINES = 256  # a log with more dropped than valid lines is written again from here on


@dataclass(frozen=True)
class StepLog:
    """The lines of a log that count.

    Attributes:
        name: Name of the file in the history's folder.
        skip: Number of dropped lines at its start.
        end: Length of the valid part in bytes.
        steps: The steps of the remaining lines.
    """

    name: str
    skip: int
    end: int
    steps: tuple[Step, ...] = field(repr=False)

    @classmethod
    def read(cls, folder: Path, data: dict[str, Any]) -> StepLog:
        """Read the log that an index names; ValueError if it is damaged or missing."""
        name, skip, end = str(data["name"]), int(data["skip"]), int(data["end"])
        try:
            with open(folder / name, "rb") as file:
                stored = file.read(end)
        except FileNotFoundError:
            raise ValueError(f"{folder / name} is missing") from None
        if len(stored) < end:
            raise ValueError(f"{folder / name} is shorter than {end} bytes")
        lines = stored.splitlines()[skip:]
        return cls(name, skip, end, tuple(Step.from_json(json.loads(line)) for line in lines))

    def to_json(self) -> dict[str, Any]:
        """Return what ``read`` needs."""
        return {"name": self.name, "skip": self.skip, "end": self.end}


def store_steps(
    folder: Path, steps: tuple[Step, ...], log: StepLog | None
) -> tuple[StepLog | None, int]:
    """Store steps, if possible at the end of a log; return the log and the written bytes."""
    if not steps:
        return None, 0
    dropped = (
        0 if log is None else next((i for i, s in enumerate(log.steps) if s is steps[0]), None)
    )
    if log is None or dropped is None:
        return _write_new(folder, steps)
    remaining, skip = log.steps[dropped:], log.skip + dropped
    if steps[: len(remaining)] != remaining or skip > max(_SKIPPED_LINES, len(steps)):
        return _write_new(folder, steps)
    data = _lines(steps[len(remaining) :])
    if data:
        with open(folder / log.name, "r+b", buffering=0) as file:
            file.seek(log.end)
            file.write(data)
    return StepLog(log.name, skip, log.end + len(data), steps), len(data)


def _write_new(folder: Path, steps: tuple[Step, ...]) -> tuple[StepLog, int]:
    name, data = f"{_PREFIX}{os.urandom(8).hex()}.jsonl", _lines(steps)
    (folder / name).write_bytes(data)
    return StepLog(name, 0, len(data), steps), len(data)


def remove_other_logs(folder: Path, log: StepLog | None) -> None:
    """Remove the logs of replaced or dropped timelines."""
    current = None if log is None else log.name
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            if name.startswith(_PREFIX) and name != current:
                os.unlink(folder / name)


def _lines(steps: tuple[Step, ...]) -> bytes:
    return b"".join([step.line() for step in steps])
