"""The event log of a kernel, for panels that open later than it began."""

from __future__ import annotations

import json

from jupyter_server.auth.decorator import authorized
from tornado import web

from oh_jupyter.errors import WireError
from oh_jupyter.server.handlers.base import OhHandler

__all__ = ["EventHandler", "EventsHandler"]


class EventsHandler(OhHandler):
    """GET the events of a kernel's runtime."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kernel_id: str | None = None) -> None:
        """List events from ``start_id`` on, at most ``limit``, long strings clipped.

        Args:
            kernel_id: An open kernel; None for the default one.
        """
        fields = {
            "start_id": self._count("start_id", 0),
            "limit": self._count("limit", 200),
        }
        link = await self.link(kernel_id)
        reply = await link.request("events", fields, load=False)
        self.finish_json(
            {
                "generation": reply.fields.get("generation"),
                "events": json.loads(reply.body or b"[]"),
            }
        )

    def _count(self, name: str, default: int) -> int:
        text = self.get_query_argument(name, str(default))
        if not text.isascii() or not text.isdigit():
            raise WireError(f"{name!r} must be a number of events, not {text!r}", name)
        return int(text)


class EventHandler(OhHandler):
    """GET one event, whole."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kernel_id: str, event_id: str) -> None:
        """Send the wire form of one event, screenshot and all.

        Args:
            kernel_id: An open kernel.
            event_id: The event's id.
        """
        link = await self.link(kernel_id)
        reply = await link.request("event", {"id": int(event_id)}, load=False)
        self.finish_json(reply.body or b"null")
