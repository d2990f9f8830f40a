"""A cell with ``await`` inside a cell: the kernel's loop is in the middle of the outer one.

So it gets a loop of its own. What belongs to the kernel's loop, a task that an earlier cell has
started, cannot be awaited there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["run_nested"]

T = TypeVar("T")


def run_nested(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in a thread whose own loop may be running.

    A KeyboardInterrupt cancels it.
    """
    with _no_loop_running():
        loop = asyncio.new_event_loop()
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None  # where in the loop it came is of no interest
        finally:
            _end(loop)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what a coroutine has left, as ``asyncio.run`` does."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


@contextmanager
def _no_loop_running() -> Iterator[None]:
    """Hide this thread's loop, and the task that it is in."""
    outer = asyncio._get_running_loop()
    if outer is None:
        yield
        return
    # Only newer Pythons know one task for each thread.
    swap = getattr(asyncio.tasks, "_swap_current_task", None)
    task = swap(outer, None) if swap is not None else None
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if swap is not None:
            swap(outer, task)
