"""An ASGI application behind a tornado handler: what the SDK's transports need of a server.

A library for this would have to run the application in a thread or behind a port of its
own; a request, a response in pieces and a client that goes away are all that is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tornado.iostream import StreamClosedError
from tornado.web import RequestHandler

Message = MutableMapping[str, Any]
Asgi = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]
"""An ASGI application: scope, receive, send."""


class Exchange:
    """One HTTP request and its response, as an ASGI application sees them.

    ``gone`` is set when the client has closed the connection, or is to be treated so.
    """

    def __init__(self, handler: RequestHandler, body: bytes) -> None:
        """Describe the request of a tornado handler, whose body has been read."""
        request = handler.request
        self.gone = asyncio.Event()
        self._handler = handler
        self._body = body
        self._body_taken = False
        host, _, port = request.host.partition(":")
        self.scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.version.removeprefix("HTTP/"),
            "method": request.method,
            "scheme": request.protocol,
            "path": request.path,
            "raw_path": request.path.encode(),
            "query_string": request.query.encode(),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in request.headers.get_all()
            ],
            "client": (request.remote_ip, 0),
            "server": (host, int(port) if port.isdigit() else None),
        }

    async def receive(self) -> Message:
        """The body, which has been read already; after it, news of the client's leaving."""
        if not self._body_taken:
            self._body_taken = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Pass on the status, or a piece of the body at once."""
        handler = self._handler
        if self.gone.is_set():
            return
        if message["type"] == "http.response.start":
            handler.set_status(message["status"])
            # What the SDK does not name is a plain sentence.
            handler.set_header("Content-Type", "text/plain; charset=utf-8")
            for name, value in message.get("headers", []):
                # Connections are tornado's own business.
                if name.lower() != b"connection":
                    handler.set_header(name.decode("latin-1"), value.decode("latin-1"))
            return
        try:
            if message.get("body"):
                handler.write(bytes(message["body"]))
            await handler.flush()
        except StreamClosedError:
            self.gone.set()

    async def run(self, application: Asgi) -> None:
        """Let an application answer."""
        await application(self.scope, self.receive, self.send)
