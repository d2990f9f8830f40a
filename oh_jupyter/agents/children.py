"""Starting children beside the loop, so that none is left behind when the start is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from oh_jupyter.background import try_start_thread
from oh_jupyter.process import Child, spawn

END_GRACE_SECONDS = 1.0
THREAD_NAME = "oh_jupyter-agent"
"""Of what blocks for as long as it takes, which no pool has room for."""

InThread = Callable[..., Coroutine[Any, Any, Any]]
"""``ActionExecutor.in_thread``."""


async def start_child(in_thread: InThread, argv: Sequence[str], **options: Any) -> Child:
    """Start a child, see ``oh_jupyter.process.spawn``; one that is not waited for is ended."""
    started: list[Child] = []
    abandoned = False
    handing_over = threading.Lock()

    def start() -> Child:
        child = spawn(argv, **options)
        with handing_over:
            if abandoned:
                _discard(child)
            else:
                started.append(child)
        return child

    try:
        child: Child = await in_thread(start)
    except asyncio.CancelledError:
        # Nobody gets the result of a thread whose waiter, or whose loop, has gone.
        with handing_over:
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
    """End a child and all of its descendants, and reap it, without waiting."""
    child.begin_termination(END_GRACE_SECONDS)
    if try_start_thread(child.terminate, THREAD_NAME, END_GRACE_SECONDS) is None:
        child.terminate(END_GRACE_SECONDS)
