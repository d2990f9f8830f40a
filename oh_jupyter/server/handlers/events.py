"""The event log of a kernel, for clients that connect after it began."""

from __future__ import annotations

import json
import re
from typing import Any

from tornado.iostream import StreamClosedError

from oh_jupyter.errors import OhJupyterError, WireError
from oh_jupyter.operations.runtime import Event, Events
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.routes import READ_EVENTS, RouteTable
from oh_jupyter.server.links import KernelLink

HEARTBEAT_SECONDS = 15.0  # silence after which the stream sends a keep-alive comment
MAX_BATCH_EVENTS = 200  # events requested from a kernel at once

routes = RouteTable()


@routes.add("GET /events", READ_EVENTS, "listEvents")
async def list_events(handler: OhHandler, kernel_id: str | None = None) -> None:
    """List events from ``start_id`` on, at most ``limit``, or stream them.

    Long strings are clipped, unless ``whole=true``. A client that accepts ``text/event-stream``
    gets server-sent events: those recorded already, then each new one. Their ids have the form
    ``generation:id``; a client that sends the last one in ``Last-Event-ID`` misses none, and
    starts from the beginning after a restart of the kernel.
    """
    start = _count(handler, "start_id", 0)
    whole = handler.flag("whole")
    link = await handler.link(kernel_id)
    if "text/event-stream" in handler.request.headers.get("Accept", ""):
        await handler.while_connected(_stream(handler, link, start, whole))
        return
    limit = _count(handler, "limit", MAX_BATCH_EVENTS)
    reply = await link.request(Events(start_id=start, limit=limit, whole=whole), load=False)
    handler.finish_json(
        {
            "generation": reply.fields.get("generation"),
            **json.loads(reply.body or b"{}"),
        }
    )


async def _stream(handler: OhHandler, link: KernelLink, start: int, whole: bool) -> None:
    generation, last_id = _position(handler.request.headers.get("Last-Event-ID", ""))
    reply = await link.request(Events(limit=0), load=False)
    current = str(reply.fields.get("generation"))
    if generation is not None:
        start = last_id + 1 if generation == current else 0
    handler.set_header("Content-Type", "text/event-stream")
    handler.set_header("Cache-Control", "no-cache")
    handler.set_header("X-Accel-Buffering", "no")
    try:
        await _send(handler, "generation", {"generation": current})
        while True:
            # Jupyter silently forgets a kernel whose restart has failed.
            handler.state.router.check(link.kernel_id)
            following = Events(
                start_id=start, limit=MAX_BATCH_EVENTS, whole=whole, wait=HEARTBEAT_SECONDS
            )
            reply = await link.request(following, load=False, cancellable=True)
            if str(reply.fields.get("generation")) != current:
                return  # the client reconnects and gets the new one
            events = json.loads(reply.body or b"{}")["events"]
            for event in events:
                kind = "action" if "action" in event else "observation"
                await _send(handler, kind, event, f"{current}:{event['id']}")
                start = event["id"] + 1
            if not events:
                handler.write(": still here\n\n")
                await handler.flush()
    except StreamClosedError:
        pass
    except OhJupyterError as error:
        await _send(handler, "gone", {"detail": str(error)})


async def _send(handler: OhHandler, kind: str, data: dict[str, Any], id: str | None = None) -> None:
    line = "" if id is None else f"id: {id}\n"
    handler.write(f"{line}event: {kind}\ndata: {json.dumps(data)}\n\n")
    await handler.flush()


def _count(handler: OhHandler, name: str, default: int) -> int:
    text = handler.get_query_argument(name, str(default))
    # The message to the kernel cannot hold larger integers.
    if not re.fullmatch(r"\d{1,15}", text, re.ASCII):
        raise WireError(f"{name!r} must be a number of events, not {text!r}", name)
    return int(text)


def _position(last_event_id: str) -> tuple[str | None, int]:
    """Split a ``Last-Event-ID`` into generation and event id."""
    generation, _, number = last_event_id.rpartition(":")
    if not generation or not re.fullmatch(r"\d{1,15}", number, re.ASCII):
        return None, -1
    return generation, int(number)


def _event(handler: OhHandler, event_id: str) -> Event:
    return Event(int(event_id))


_EVENT = r"GET /events/(?P<event_id>\d{1,15})"
routes.forward(_EVENT, READ_EVENTS, "getEvent", _event, load=False)
