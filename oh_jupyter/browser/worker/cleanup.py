"""What is thrown away between steps, so that a long session does not grow.

Measured over 500 pages with frames: without this the page's process grows from 40 to 300 MB,
since Chromium collects the documents that were left only when it has nothing else to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oh_jupyter.browser.worker.session import BrowserSession

__all__ = ["DOCUMENTS_PER_COLLECTION", "limit_driver_memory", "release_resources"]

DOCUMENTS_PER_COLLECTION = 25
"""Documents that a tab shows, frames included, until the ones before are collected."""
CLEANUP_TIMEOUT_SECONDS = 2.0
"""Seconds after which a page that does not release_resources up is left alone."""
DRIVER_PRELOAD = Path(__file__).with_name("driver_limits.cjs")


async def release_resources(session: BrowserSession) -> None:
    """Let go of what the last step needed; for when the answer was sent."""
    handles, session.handles = session.handles, []
    work: list[Awaitable[Any]] = [handle.dispose() for handle in handles]
    for inspector in session.inspectors:
        if inspector.documents_shown >= DOCUMENTS_PER_COLLECTION:
            inspector.documents_shown = 0
            work += [each.send("HeapProfiler.collectGarbage") for each in inspector.sessions]
    if work:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                asyncio.gather(*work, return_exceptions=True), CLEANUP_TIMEOUT_SECONDS
            )


def limit_driver_memory() -> None:
    """Make Playwright's driver, once started by this process, remember less."""
    if DRIVER_PRELOAD.is_file():
        given = os.environ.get("NODE_OPTIONS", "")
        os.environ["NODE_OPTIONS"] = f'{given} --require "{DRIVER_PRELOAD.as_posix()}"'.strip()
