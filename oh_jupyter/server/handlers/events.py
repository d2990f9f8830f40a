"""The event log of a kernel, for panels that open later than it began."""

from __future__ import annotations

import json
import re
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from oh_jupyter.errors import OhJupyterError, WireError
from oh_jupyter.server.handlers.base import OhHandler, Routes
from oh_jupyter.server.links import KernelLink

HEARTBEAT_SECONDS = 15.0
"""Seconds of silence after which a line is sent that only says that the stream is alive."""

MAX_BATCH_EVENTS = 200
"""Events that a kernel is asked for at once."""


class EventsHandler(OhHandler):
    """GET the events of a kernel's runtime, as a list or as a stream."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, kernel_id: str | None = None) -> None:
        """List events from ``start_id`` on, at most ``limit``, or stream them.

        Long strings are clipped, unless ``whole=true``. A client that accepts
        ``text/event-stream`` gets server-sent events: those recorded already, and each new one
        as it comes. The stream's ids have the form ``generation:id``, and a client that sends
        the last one in ``Last-Event-ID`` misses none; after a restart it begins anew.
        """
        start = self._count("start_id", 0)
        whole = self.flag("whole")
        link = await self.link(kernel_id)
        if "text/event-stream" in self.request.headers.get("Accept", ""):
            await self.while_connected(self._stream(link, start, whole))
            return
        fields = {
            "start_id": start,
            "limit": self._count("limit", MAX_BATCH_EVENTS),
            "whole": whole,
        }
        reply = await link.request("events", fields, load=False)
        self.finish_json(
            {
                "generation": reply.fields.get("generation"),
                "workspace_dir": reply.fields.get("workspace_dir"),
                "events": json.loads(reply.body or b"[]"),
            }
        )

    async def _stream(self, link: KernelLink, start: int, whole: bool) -> None:
        generation, seen = _resumed(self.request.headers.get("Last-Event-ID", ""))
        reply = await link.request("events", {"limit": 0}, load=False)
        current = str(reply.fields.get("generation"))
        if generation is not None:
            start = seen + 1 if generation == current else 0
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-cache")
        self.set_header("X-Accel-Buffering", "no")
        try:
            await self._say("generation", {"generation": current})
            while True:
                # Jupyter forgets a kernel whose restart has failed without telling anybody.
                self.state.router.check(link.kernel_id)
                fields = {
                    "start_id": start,
                    "limit": MAX_BATCH_EVENTS,
                    "whole": whole,
                    "wait": HEARTBEAT_SECONDS,
                }
                reply = await link.request("events", fields, load=False, cancellable=True)
                if str(reply.fields.get("generation")) != current:
                    return  # the client comes back, and is told of the new one
                events = json.loads(reply.body or b"[]")
                for event in events:
                    kind = "action" if "action" in event else "observation"
                    await self._say(kind, event, f"{current}:{event['id']}")
                    start = event["id"] + 1
                if not events:
                    self.write(": still here\n\n")
                    await self.flush()
        except StreamClosedError:
            pass
        except OhJupyterError as problem:
            await self._say("gone", {"detail": str(problem)})

    async def _say(self, kind: str, data: dict[str, Any], id: str | None = None) -> None:
        line = "" if id is None else f"id: {id}\n"
        self.write(f"{line}event: {kind}\ndata: {json.dumps(data)}\n\n")
        await self.flush()

    def _count(self, name: str, default: int) -> int:
        text = self.get_query_argument(name, str(default))
        # Longer numbers would be no integers in the message to the kernel.
        if not re.fullmatch(r"\d{1,15}", text, re.ASCII):
            raise WireError(f"{name!r} must be a number of events, not {text!r}", name)
        return int(text)


def _resumed(last: str) -> tuple[str | None, int]:
    """Generation and id of the event that the client has seen last."""
    generation, _, number = last.rpartition(":")
    if not generation or not re.fullmatch(r"\d{1,15}", number, re.ASCII):
        return None, -1
    return generation, int(number)


class EventHandler(OhHandler):
    """GET one event, whole."""

    @web.authenticated
    @authorized("read", resource="oh_jupyter:events")
    async def get(self, event_id: str, kernel_id: str | None = None) -> None:
        """Send the wire form of one event, screenshot and all."""
        reply = await self.ask(kernel_id, "event", {"id": int(event_id)}, load=False)
        self.finish_json(reply.body or b"null")


KERNEL_ROUTES: Routes = [
    (r"/events", EventsHandler),
    (r"/events/(?P<event_id>\d{1,15})", EventHandler),
]
