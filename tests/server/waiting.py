"""Wait for a condition on the event loop that a test shares with its server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

POLL_SECONDS = 0.01


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until a condition holds; fail after a minute."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(POLL_SECONDS)
