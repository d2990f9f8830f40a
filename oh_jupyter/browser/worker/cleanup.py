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

__all__ = ["DOCUMENTS", "bound_driver", "tidy"]

DOCUMENTS = 25
"""Documents that a tab shows, frames included, until the ones before are collected."""
PATIENCE = 2.0
"""Seconds after which a page that does not tidy up is left alone."""
DRIVER_LIMITS = Path(__file__).with_name("driver_limits.cjs")


async def tidy(session: BrowserSession) -> None:
    """Let go of what the last step needed; for when the answer was sent.

    Args:
        session: The browser. Whatever goes wrong with it is left to the next step.
    """
    handles, session.handles = session.handles, []
    work: list[Awaitable[Any]] = [handle.dispose() for handle in handles]
    for inspector in session.inspectors:
        if inspector.documents_shown >= DOCUMENTS:
            inspector.documents_shown = 0
            work += [each.send("HeapProfiler.collectGarbage") for each in inspector.sessions]
    if work:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*work, return_exceptions=True), PATIENCE)


def bound_driver() -> None:
    """Make Playwright's driver, once started by this process, remember less."""
    if DRIVER_LIMITS.is_file():
        given = os.environ.get("NODE_OPTIONS", "")
        os.environ["NODE_OPTIONS"] = f'{given} --require "{DRIVER_LIMITS.as_posix()}"'.strip()
