"""Work of an agent during a turn, which decides which changes of files are the turn's."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from oh_jupyter.moves import CLOCK_SECONDS, moved_to, moves

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import Checkpoint, Work

Span = tuple[float, float]
"""Start and end of the changes that are the agent's, in seconds since the epoch."""


class AgentWork:
    """When an agent worked during a turn, which files it edited itself, and its ``variables``."""

    def __init__(
        self, notebook: str, settle_seconds: float, turn: Checkpoint | None = None
    ) -> None:
        """Take the notebook's path or "", and how long after work a change counts as its result.

        The kernel's notebook is special because people's tabs save it.
        """
        self._owner, self._begin = ("", 0.0) if turn is None else (turn.owner, turn.time)
        self._notebook = notebook and os.path.realpath(notebook)
        self._settle_seconds = settle_seconds
        self.variables: set[str] = set()
        self._edited: dict[str, list[Span]] = {}
        self._under_way: dict[Hashable, float] = {}
        self._spans: list[Span] = []

    def begin(self, work: Hashable) -> None:
        """Record the start of a piece of work."""
        self._under_way.setdefault(work, time.time())

    def end(self, work: Hashable) -> bool:
        """Record the end of a piece of work; return whether it was in progress."""
        if work not in self._under_way:
            return False
        self._add(self._spans, self._under_way.pop(work))
        return True

    def continue_from(self, work: AgentWork) -> None:
        """Take over the pieces of another turn's work that have not ended."""
        self._under_way.update(dict.fromkeys(work._under_way, time.time()))

    @property
    def is_under_way(self) -> bool:
        """Whether any piece of work has not ended."""
        return bool(self._under_way)

    def edit(self, path: str) -> None:
        """Record that the agent edited a file itself."""
        self._add(self._edited.setdefault(os.path.realpath(path), []), time.time())

    def _add(self, spans: list[Span], begin: float) -> None:
        """Add a span of work that ends now, which extends the last one if they overlap."""
        begin, end = begin - CLOCK_SECONDS, time.time() + self._settle_seconds
        last_begin, last_end = spans[-1] if spans else (math.inf, -math.inf)
        if begin <= last_end and last_begin <= end:
            spans[-1] = (min(begin, last_begin), max(end, last_end))
        else:
            spans.append((begin, end))

    def recorded(self, turn: int = 0) -> Work:
        """Return the work as checkpoints store it."""
        from oh_jupyter.checkpoints import Work

        under_way = [(begin - CLOCK_SECONDS, None) for begin in self._under_way.values()]
        spans, notebook = [*self._spans, *under_way], self._notebook_now()
        return Work(turn, spans, self._edited, notebook, self._owner, self._begin)

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
