"""What killed kernels have left to report: the server does it, as nobody else may come for long."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from oh_jupyter.background import run_in_background
from oh_jupyter.config import Settings
from oh_jupyter.errors import OhJupyterError

__all__ = ["OutboxDrain"]

FLUSH_SECONDS = 60.0

logger = logging.getLogger(__name__)


class OutboxDrain:
    """Delivers what is in the webhooks' outbox of the server's settings, if they have one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store: Any = None
        self._draining = asyncio.Lock()

    def kernel_gone(self) -> None:
        """Look for what a kernel has left; nothing is waited for."""
        if self._settings.file_store_web_hook_url and not self._draining.locked():
            run_in_background(self._drain())

    async def _drain(self) -> None:
        async with self._draining:
            try:
                await asyncio.to_thread(self._flush)
            except (OhJupyterError, OSError) as problem:
                logger.warning("What a kernel has left in its outbox stays there: %s", problem)

    def _flush(self) -> None:
        from oh_jupyter.storage.registry import make_file_store

        if self._store is None:  # it goes on trying while the receiver is away
            self._store = make_file_store(self._settings)
        if hasattr(self._store, "flush"):
            self._store.flush(FLUSH_SECONDS)

    async def close(self) -> None:
        """End the deliveries; what is not accepted stays in the outbox."""
        if hasattr(self._store, "close"):
            await asyncio.to_thread(self._store.close, 0)
