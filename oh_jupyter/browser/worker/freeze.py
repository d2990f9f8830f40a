"""Pages that nobody uses stand still: their processes sleep, which no page can tell."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

    from oh_jupyter.browser.worker.session import BrowserSession


class IdleFreezer:
    """Stops the processes of a browser's pages some seconds after its last use.

    DevTools' own way (``Page.setWebLifecycleState``) does nothing to pages that Playwright drives,
    since it tells each that it is in focus, and elsewhere leaves them hidden after a picture.
    """

    def __init__(self, session: BrowserSession) -> None:
        self._session = session
        settings = session.settings
        # In a window a person may work, and a browser that is not ours has other users.
        is_ours_alone = settings.headless and not settings.cdp_url
        self._seconds = settings.freeze_seconds if is_ours_alone else 0
        self._uses = 0
        self._timer: asyncio.TimerHandle | None = None
        self._frozen: list[int] = []

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Within the block, the pages run."""
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
    """Signal processes, if they are still there."""
    if pids:
        import psutil

        for pid in pids:
            with contextlib.suppress(psutil.Error):
                signal(psutil.Process(pid))
