"""A person takes the browser over: what agents want of it waits meanwhile."""

from __future__ import annotations

import asyncio

LAPSE_SECONDS = 60.0
"""How long the browser stays taken over when nobody looks at it any more."""


class Takeover:
    """Whether a person has the browser; on the runtime's loop."""

    def __init__(self) -> None:
        """Begin with the browser free."""
        self._free = asyncio.Event()
        self._free.set()
        self._lapse: asyncio.TimerHandle | None = None

    @property
    def is_held(self) -> bool:
        """Whether a person has it."""
        return not self._free.is_set()

    def take(self) -> None:
        """Let agents wait from now on."""
        self._free.clear()
        self.seen()

    def hand_back(self) -> None:
        """Let agents go on."""
        self._free.set()
        if self._lapse is not None:
            self._lapse.cancel()

    def seen(self) -> None:
        """Note that the person still looks at the page."""
        if self._lapse is not None:
            self._lapse.cancel()
        if self.is_held:
            self._lapse = asyncio.get_running_loop().call_later(LAPSE_SECONDS, self.hand_back)

    async def until_free(self, seconds: float) -> bool:
        """Wait until the browser is handed back; False if it was not within the time."""
        try:
            async with asyncio.timeout(seconds):
                await self._free.wait()
        except TimeoutError:
            return False
        return True
