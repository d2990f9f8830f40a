"""Takeover of the browser by a person, during which agents wait."""

from __future__ import annotations

import asyncio

LAPSE_SECONDS = 60.0
"""Time after which a takeover ends if the person no longer watches."""


class Takeover:
    """A person's hold on the browser; on the runtime's loop."""

    def __init__(self) -> None:
        """Start with the browser free."""
        self._free = asyncio.Event()
        self._free.set()
        self._lapse: asyncio.TimerHandle | None = None

    @property
    def is_held(self) -> bool:
        """Whether a person holds the browser."""
        return not self._free.is_set()

    def take(self) -> None:
        """Make agents wait."""
        self._free.clear()
        self.seen()

    def hand_back(self) -> None:
        """Let agents continue."""
        self._free.set()
        if self._lapse is not None:
            self._lapse.cancel()

    def seen(self) -> None:
        """Record that the person still watches the page."""
        if self._lapse is not None:
            self._lapse.cancel()
        if self.is_held:
            self._lapse = asyncio.get_running_loop().call_later(LAPSE_SECONDS, self.hand_back)

    async def until_free(self, seconds: float) -> bool:
        """Wait until the browser is free; return False on timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._free.wait()
        except TimeoutError:
            return False
        return True
