"""The event log of a kernel, for clients that connect after it began."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tornado.iostream import StreamClosedError

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.operations import reply_to, to_json
from oh_jupyter.operations.runtime import Event, Events
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.contract import (
    KERNEL_ERRORS,
    NOT_LOADED,
    TEXT,
    Answer,
    Contract,
    IfLoaded,
    component,
    constrained,
    returns,
)
from oh_jupyter.server.handlers.routes import READ_EVENTS, RouteTable
from oh_jupyter.server.links import KernelLink

HEARTBEAT_SECONDS = 15.0  # silence after which the stream sends a keep-alive comment
MAX_BATCH_EVENTS = 200  # events requested from a kernel at once
MAX_NUMBER = 10**15 - 1  # the message to the kernel cannot hold larger integers

routes = RouteTable(KERNEL_ERRORS)


def _number_of_events(default: int) -> Any:
    return constrained(default, minimum=0, maximum=MAX_NUMBER, expected="a number of events")


@dataclass(frozen=True)
class EventQuery(IfLoaded):
    """The query of the event log.

    Attributes:
        start_id: Id of the first event.
        limit: Maximum number of events.
        whole: Include long strings and pictures.
    """

    start_id: int = _number_of_events(0)
    limit: int = _number_of_events(MAX_BATCH_EVENTS)
    whole: bool = False


@dataclass(frozen=True)
class ListedEvents:
    """A part of the event log.

    Attributes:
        generation: Id of the runtime.
        workspace_dir: Directory where relative paths start.
        events: Events in their order.
    """

    generation: str
    workspace_dir: str
    events: list[dict[str, Any]] = field(metadata={"items": component("ListedEvent")})


EVENT_LOG = Contract(
    (
        Answer("Events in their order.", ListedEvents, {"text/event-stream": TEXT}),
        NOT_LOADED,
    ),
    query=EventQuery,
    headers={"Last-Event-ID": {"description": "Position from which a stream continues."}},
    errors=(422,),
)


@routes.add("GET /events", READ_EVENTS, "listEvents", contract=EVENT_LOG)
async def list_events(handler: OhHandler, kernel_id: str | None = None) -> None:
    """List or stream the event log.

    A client that accepts ``text/event-stream`` gets server-sent events: those recorded already,
    then each new one as it comes, as ``action`` and ``observation``, after one ``generation``; a
    last one, ``gone``, says why the kernel ended. The ids in the stream have the form
    ``generation:id``; a client that sends the last one in ``Last-Event-ID`` misses none, and starts
    from the beginning after a restart of the kernel.
    """
    query = handler.query(EventQuery)
    link = await handler.link(kernel_id)
    if "text/event-stream" in handler.request.headers.get("Accept", ""):
        await handler.while_connected(_stream(handler, link, query.start_id, query.whole))
        return
    asked = Events(start_id=query.start_id, limit=query.limit, whole=query.whole)
    reply = await link.request(asked, load=False)
    page = reply_to(asked, reply.body)
    generation = str(reply.fields.get("generation"))
    handler.finish_json(to_json(ListedEvents(generation, page.workspace_dir, page.events)))


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


def _position(last_event_id: str) -> tuple[str | None, int]:
    """Split a ``Last-Event-ID`` into generation and event id."""
    generation, _, number = last_event_id.rpartition(":")
    if not generation or not re.fullmatch(r"\d{1,15}", number, re.ASCII):
        return None, -1
    return generation, int(number)


ONE_EVENT = Contract(
    returns(
        "An Action or an Observation.", {"anyOf": [component("Action"), component("Observation")]}
    ),
    errors=(404,),
)


def _event(handler: OhHandler, event_id: str) -> Event:
    """Get one complete event."""
    return Event(int(event_id))


_EVENT = r"GET /events/(?P<event_id>\d{1,15})"
routes.forward(_EVENT, READ_EVENTS, "getEvent", _event, load=False, contract=ONE_EVENT)
