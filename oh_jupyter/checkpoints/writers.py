"""Processes that change files, and those that an agent's step has started."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oh_jupyter.checkpoints.process_log import ProcessLog

Lineage = frozenset[int]
"""The ids of a process and its ancestors; empty if it had ended before that was read."""

Writers = Mapping[int, Lineage]
"""The processes that changed a path, by id; empty if they are not known."""


@dataclass(frozen=True)
class Job:
    """A process that lives on after the step that started it.

    Attributes:
        pid: Its id.
        started: When it started, in clock ticks, to notice that the id was reused.
        step: Number of the step.
        turn: Number of the turn.
        label: Name of the step.
    """

    pid: int
    started: str
    step: int
    turn: int
    label: str

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return _start_time(self.pid) == self.started

    @property
    def is_replaced(self) -> bool:
        """Whether another process has its id now."""
        return _start_time(self.pid) not in ("", self.started)


def lineage(pid: int, log: ProcessLog | None = None) -> Lineage:
    """Return a process and its ancestors, or nothing if it has ended and the log lacks it."""
    pids: list[int] = []
    while pid > 1 and pid not in pids:
        parent = log.parent(pid) if log is not None else 0
        if not parent:
            fields = _status(pid)
            if not fields and not pids and not (log is not None and log.is_complete):
                break
            parent = int(fields[1]) if fields else 0
        pids.append(pid)
        pid = parent
    return frozenset(pids)


def descendants(pid: int, without: Iterable[int] = (), log: ProcessLog | None = None) -> set[int]:
    """Return the descendants of a process that run, except some and what is below them.

    Args:
        pid: The process.
        without: The exceptions.
        log: The log in which those are whose parents have ended.
    """
    skipped = set(without)
    pending, known = [pid], set[int]()
    if log is not None:
        for started in log.running():
            ancestors = lineage(started, log)
            if pid in ancestors and skipped.isdisjoint(ancestors):
                known.add(started)
        pending += known
    while pending:
        for child in _children(pending.pop()) - skipped - known:
            known.add(child)
            pending.append(child)
    return known - {pid}


def jobs(pids: Iterable[int], step: int, turn: int, label: str) -> list[Job]:
    """Return the processes of a step that still run."""
    started = ((pid, _start_time(pid)) for pid in sorted(pids))
    return [Job(pid, time, step, turn, label) for pid, time in started if time]


def opened_for_writing(pid: int) -> set[str]:
    """Return the real paths that a process has open for writing, as far as they may be read."""
    paths = set()
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError, ValueError):
                # The bits of a link's permissions are those of the descriptor.
                if os.lstat(f"{folder}/{name}").st_mode & 0o200:
                    paths.add(os.readlink(f"{folder}/{name}"))
    return paths


def _children(pid: int) -> set[int]:
    pids: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                pids.update(map(int, file.read().split()))
    return pids


def _start_time(pid: int) -> str:
    fields = _status(pid)
    return fields[19] if fields and fields[0] != "Z" else ""


def _status(pid: int) -> list[str]:
    """Return the fields of a process' status, from its state on; none if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name in parentheses may contain spaces and parentheses.
            return file.read().rpartition(") ")[2].split()
    except OSError:
        return []
