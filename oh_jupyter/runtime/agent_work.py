"""Work of an agent during a turn, which decides which changes of files are the turn's."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from oh_jupyter.moves import moved_to, moves

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Work

CLOCK_SECONDS = 0.1
"""How much coarser than the clock the times of files may be."""


class AgentWork:
    """When an agent worked during a turn, which files it edited itself, and its ``variables``."""

    def __init__(self, notebook: str, settle_seconds: float) -> None:
        """Take the notebook's path or "", and how long after work a change counts as its result.

        The kernel's notebook is special because people's tabs save it.
        """
        self._notebook = notebook and os.path.realpath(notebook)
        self._settle_seconds = settle_seconds
        self.variables: set[str] = set()
        self._edited: dict[str, list[float]] = {}
        self._under_way: dict[Hashable, float] = {}
        self._spans: list[tuple[float, float]] = []

    def begin(self, work: Hashable) -> None:
        """Record the start of a piece of work."""
        self._under_way.setdefault(work, time.time())

    def end(self, work: Hashable) -> bool:
        """Record the end of a piece of work; return whether it was in progress."""
        if work not in self._under_way:
            return False
        self._spans.append((self._under_way.pop(work), time.time()))
        return True

    @property
    def is_under_way(self) -> bool:
        """Whether any piece of work has not ended."""
        return bool(self._under_way)

    def edit(self, path: str) -> None:
        """Record that the agent edited a file itself."""
        self._edited.setdefault(os.path.realpath(path), []).append(time.time())

    def recorded(self, turn: int = 0) -> Work:
        """Return the work as checkpoints store it."""
        from oh_jupyter.checkpoints import Work

        done = [(begin - CLOCK_SECONDS, end + self._settle_seconds) for begin, end in self._spans]
        under_way = [(begin - CLOCK_SECONDS, None) for begin in self._under_way.values()]
        edited = {
            path: [(at - CLOCK_SECONDS, at + self._settle_seconds) for at in times]
            for path, times in self._edited.items()
        }
        return Work(turn, [*done, *under_way], edited, self._notebook_now())

    def _notebook_now(self) -> str:
        if not self._notebook:
            return ""
        return moved_to(self._notebook, moves(_kernel_start_time()))

    def is_of_turn(self, path: Path, changed: float) -> bool:
        """Return whether a change is the agent's, judged by its time and path."""
        return self.recorded().is_of_turn(path, changed)


@cache
def _kernel_start_time() -> float:
    """Return when this process started, which is when its notebook had its first name."""
    import psutil

    return psutil.Process().create_time() - CLOCK_SECONDS
