"""Tasks that nobody awaits, held until they end: an asyncio loop holds its tasks weakly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

__all__ = ["run_in_background"]

logger = logging.getLogger(__name__)

_tasks: set[asyncio.Task[Any]] = set()


def run_in_background(work: Coroutine[Any, Any, Any]) -> None:
    """Start a task whose failure nobody needs to hear of; it is logged for debugging."""
    task = asyncio.get_running_loop().create_task(work)
    _tasks.add(task)
    task.add_done_callback(_ended)


def _ended(task: asyncio.Task[Any]) -> None:
    _tasks.discard(task)
    if not task.cancelled() and task.exception() is not None:
        logger.debug("A background task failed: %s", task.exception())
