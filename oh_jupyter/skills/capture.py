"""What a skill prints, while cells print too.

Skills that are called as Actions run in worker threads of the kernel, beside the person's
cells, and both print to ``sys.stdout``. While a skill runs, that is a stream which looks at
who prints: the skill's words go to the skill's result, all others go where they always went.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from typing import Any

__all__ = ["captured_output"]

_captured: ContextVar[StringIO | None] = ContextVar("oh_jupyter_skill_output", default=None)
_lock = threading.Lock()
_running = 0


class _ContextStream:
    """Writes to the buffer of the context that prints, else to the stream behind it."""

    def __init__(self, stream: Any) -> None:
        self.behind = stream

    def write(self, text: str) -> int:
        target = _captured.get()
        written: int = (self.behind if target is None else target).write(text)
        return written

    def flush(self) -> None:
        if _captured.get() is None:
            self.behind.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@contextmanager
def captured_output() -> Iterator[StringIO]:
    """Collect what this thread (or task) prints; threads that it starts are not collected."""
    global _running
    buffer = StringIO()
    token = _captured.set(buffer)
    with _lock:
        _running += 1
        if not isinstance(sys.stdout, _ContextStream):
            sys.stdout = _ContextStream(sys.stdout)
    try:
        yield buffer
    finally:
        with _lock:
            _running -= 1
            # Whoever put another stream there meanwhile takes it away again themselves.
            if not _running and isinstance(sys.stdout, _ContextStream):
                sys.stdout = sys.stdout.behind
        _captured.reset(token)
