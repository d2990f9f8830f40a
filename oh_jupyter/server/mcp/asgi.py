"""An ASGI application behind a tornado handler, as the SDK's transports need it.

Libraries for this run the application in a thread or on its own port. The transports need only
one request, a streamed response and the news that the client has disconnected.
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
    """One HTTP request and its response for an ASGI application.

    ``gone`` is set when the client has disconnected, or the server ends the exchange.
    """

    def __init__(self, handler: RequestHandler, body: bytes) -> None:
        """Describe the request of a tornado handler and its complete body."""
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
        """Return the body; after that, wait for the client to disconnect."""
        if not self._body_taken:
            self._body_taken = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send the status, or flush a piece of the body."""
        handler = self._handler
        if self.gone.is_set():
            return
        if message["type"] == "http.response.start":
            handler.set_status(message["status"])
            # The default for the SDK's plain sentences.
            handler.set_header("Content-Type", "text/plain; charset=utf-8")
            for name, value in message.get("headers", []):
                # Tornado manages connections itself.
                if name.lower() != b"connection":
                    handler.set_header(name.decode("latin-1"), value.decode("latin-1"))
            return
        try:
            if message.get("body"):
                handler.write(bytes(message["body"]))
            await handler.flush()
        except StreamClosedError:
            self.gone.set()
