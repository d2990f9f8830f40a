"""Answers that are kept for a moment, for requests that come twice.

A connection through a gateway may break while a request or its answer is on the way, and nobody
can tell which. So the link sends the request again under the same key: one that the kernel has
seen is not carried out twice, but gets the answer of the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from oh_jupyter.errors import GatewayError

__all__ = ["Answers"]

Answer = tuple[dict[str, Any], list[bytes]]

KEPT_SECONDS = 60.0
"""For longer than a link tries to connect again."""

KEPT_BYTES = 16 * 1024**2
"""Bytes of all answers; what is larger is told to be done, and lost."""


class Answers:
    """The requests of the last minute by key. They live on one loop, the kernel's control loop."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[str, asyncio.Future[Answer] | None] = {}
        self._sizes: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        """Whether a request with this key was seen."""
        return key in self._known

    def expect(self, key: str) -> Callable[[Answer], None]:
        """Note a request that is seen for the first time.

        Args:
            key: Its key.

        Returns:
            What takes its answer.
        """
        loop = asyncio.get_running_loop()
        future = self._known[key] = loop.create_future()

        def keep(answer: Answer) -> None:
            future.set_result(answer)
            self._sizes[key] = sum(map(len, answer[1]))
            loop.call_later(KEPT_SECONDS, self._forget, key)
            self._make_room()

        return keep

    def _make_room(self) -> None:
        """Forget what the oldest answers say; that they were given stays known."""
        excess = sum(self._sizes.values()) - KEPT_BYTES
        for key, size in list(self._sizes.items()):
            if excess > 0 and size:
                self._known[key], self._sizes[key] = None, 0
                excess -= size

    def _forget(self, key: str) -> None:
        self._known.pop(key, None)
        self._sizes.pop(key, None)

    async def again(self, key: str) -> Answer:
        """Wait for the answer to a request that was seen before.

        Args:
            key: Its key.

        Returns:
            The answer.

        Raises:
            GatewayError: It was there, and is not kept any more.
        """
        future = self._known[key]
        if future is None:
            raise GatewayError(
                "The connection broke, and the answer is too large to have been kept. What was "
                "asked has been done; the event log has what came of it"
            )
        return await asyncio.shield(future)
