"""Keeping a command's memory below a limit.

Nothing on a plain system tells when a process tree crosses a limit (a control group would, but
making one needs rights that a notebook rarely has), so it is measured twice a second, and only
while a command runs under a limit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from oh_jupyter.process import Child

__all__ = ["MemoryGuard"]

CHECK_INTERVAL_SECONDS = 0.5
"""Seconds between two looks."""


class MemoryGuard:
    """Kills what a shell has started when it uses too much memory together."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        child: Child,
        limit: int,
        on_kill: Callable[[int], None],
    ) -> None:
        self._loop = loop
        self._child = child
        self._limit = limit
        self._on_kill = on_kill
        self._timer = loop.call_later(CHECK_INTERVAL_SECONDS, self._check)

    def stop(self) -> None:
        """Stop looking."""
        self._timer.cancel()

    def _check(self) -> None:
        used = self._child.memory_bytes()
        if used > self._limit:
            self._kill()
            self._on_kill(used)
        self._timer = self._loop.call_later(CHECK_INTERVAL_SECONDS, self._check)

    def _kill(self) -> None:
        """Kill the processes below the shell; the shell itself only if it is to blame."""
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            shell = psutil.Process(self._child.pid)
            below = shell.children(recursive=True)
            if shell.memory_info().rss > self._limit:
                below.append(shell)
            for process in below:
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    process.kill()
