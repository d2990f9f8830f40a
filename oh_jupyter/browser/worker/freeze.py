"""Suspension of idle pages: their processes stop, which no page can detect."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

    from oh_jupyter.browser.worker.session import BrowserSession


class IdleFreezer:
    """Suspender of a browser's page processes some seconds after the last use.

    DevTools' ``Page.setWebLifecycleState`` has no effect on pages that Playwright drives, because
    Playwright emulates focus; on other pages, it leaves them hidden after a screenshot.
    """

    def __init__(self, session: BrowserSession) -> None:
        self._session = session
        settings = session.settings
        # A person may work in a visible window, and a browser we did not start has other users.
        is_ours_alone = settings.headless and not settings.cdp_url
        self._seconds = settings.freeze_seconds if is_ours_alone else 0
        self._uses = 0
        self._timer: asyncio.TimerHandle | None = None
        self._frozen: list[int] = []

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the pages running within the block."""
        self._uses += 1
        self._thaw()
        try:
            yield
        finally:
            self._uses -= 1
            if self._seconds and not self._uses:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._seconds, self._freeze_later)

    def _freeze_later(self) -> None:
        self._session.run_aside(self._freeze())

    async def _freeze(self) -> None:
        pids = list(await self._session.watchdog.cpu_seconds())
        if not self._uses:
            self._frozen = pids
            _each(pids, lambda process: process.suspend())

    def _thaw(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        frozen, self._frozen = self._frozen, []
        _each(frozen, lambda process: process.resume())


def _each(pids: list[int], signal: Callable[[psutil.Process], None]) -> None:
    """Signal the processes that still exist."""
    if pids:
        import psutil

        for pid in pids:
            with contextlib.suppress(psutil.Error):
                signal(psutil.Process(pid))
