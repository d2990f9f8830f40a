"""Replies that are kept for a moment, for requests that come twice.

A connection through a gateway may break while a request or its reply is on the way, and nobody
can tell which. So the link sends the request again under the same key: one that the kernel has
seen is not carried out twice, but gets the reply of the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from oh_jupyter.errors import GatewayError
from oh_jupyter.kernel.control.rpc import Reply

__all__ = ["ReplyCache"]

KEPT_SECONDS = 60.0
"""For longer than a link tries to connect again."""

KEPT_BYTES = 16 * 1024**2
"""Of all bodies together; a larger one is told to be done, and lost."""


class ReplyCache:
    """The requests of the last minute by key, on one loop: the kernel's control loop."""

    def __init__(self) -> None:
        self._replies: dict[str, asyncio.Future[Reply] | None] = {}
        self._body_bytes: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        """Whether a request with this key was seen."""
        return key in self._replies

    def expect(self, key: str) -> Callable[[Reply], None]:
        """Note a request that is seen for the first time; what is returned takes its reply."""
        loop = asyncio.get_running_loop()
        future = self._replies[key] = loop.create_future()

        def keep(reply: Reply) -> None:
            future.set_result(reply)
            self._body_bytes[key] = len(reply.body or b"")
            loop.call_later(KEPT_SECONDS, self._forget, key)
            self._evict()

        return keep

    def _evict(self) -> None:
        """Forget what the oldest replies say; that they were given stays known."""
        excess = sum(self._body_bytes.values()) - KEPT_BYTES
        for key, size in list(self._body_bytes.items()):
            if excess > 0 and size:
                self._replies[key], self._body_bytes[key] = None, 0
                excess -= size

    def _forget(self, key: str) -> None:
        self._replies.pop(key, None)
        self._body_bytes.pop(key, None)

    async def get(self, key: str) -> Reply:
        """Wait for the reply to a request that was seen; a GatewayError if it is not kept."""
        future = self._replies[key]
        if future is None:
            raise GatewayError(
                "The connection broke, and the answer is too large to have been kept. What was "
                "asked has been done; the event log has what came of it"
            )
        return await asyncio.shield(future)
