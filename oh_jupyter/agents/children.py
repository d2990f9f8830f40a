"""Start of children beside the loop, so that a cancelled start leaves none behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from oh_jupyter.background import try_start_thread
from oh_jupyter.process import Child, spawn

END_GRACE_SECONDS = 1.0
THREAD_NAME = "oh-agents-pipe"
"""Name of threads that block for an unlimited time, which pools have no room for."""

InThread = Callable[..., Coroutine[Any, Any, Any]]
"""``ActionExecutor.in_thread``."""


async def start_child(in_thread: InThread, argv: Sequence[str], **options: Any) -> Child:
    """Start a child with ``oh_jupyter.process.spawn``; end it if the wait is cancelled."""
    started: list[Child] = []
    abandoned = False
    lock = threading.Lock()

    def start() -> Child:
        child = spawn(argv, **options)
        with lock:
            if abandoned:
                _discard(child)
            else:
                started.append(child)
        return child

    try:
        child: Child = await in_thread(start)
    except asyncio.CancelledError:
        # Nothing receives the thread's result after the waiter or the loop has gone.
        with lock:
            abandoned = True
            for child in started:
                _discard(child)
        raise
    return child


def _discard(child: Child) -> None:
    end_child(child)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def end_child(child: Child) -> None:
    """End and reap a child and all of its descendants, without waiting."""
    child.begin_termination(END_GRACE_SECONDS)
    if try_start_thread(child.terminate, THREAD_NAME, END_GRACE_SECONDS) is None:
        child.terminate(END_GRACE_SECONDS)
