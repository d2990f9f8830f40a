"""The service as a program that a hub starts."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress

from tornado import web
from tornado.httpserver import HTTPServer
from tornado.log import access_log

from oh_jupyter.hub.handlers import (
    Authorization,
    Consent,
    FrontPage,
    IssuerMetadata,
    Keys,
    LoginCallback,
    Registration,
    ResourceMetadata,
    Revocation,
    Tokens,
)
from oh_jupyter.hub.relay import Relay, Sessions, relay_client
from oh_jupyter.hub.state import HubSettings, open_state

MAX_BODY_BYTES = 100 * 1024 * 1024
"""Limit of a message, as that of Jupyter servers; these have limits of their own below it."""

SERVER = "([^/]+)"
"""Pattern of the name of a named server, which tornado unquotes."""


def make_application(settings: HubSettings) -> web.Application:
    """Return the application of a service; ``close_application`` ends it."""
    metadata = r"\.well-known"
    routes: list[tuple[str, type[web.RequestHandler]]] = [
        ("", FrontPage),
        ("mcp", Relay),
        (f"mcp/{SERVER}", Relay),
        (f"{metadata}/oauth-protected-resource/mcp", ResourceMetadata),
        (f"{metadata}/oauth-protected-resource/mcp/{SERVER}", ResourceMetadata),
        (f"{metadata}/oauth-authorization-server", IssuerMetadata),
        (f"{metadata}/openid-configuration", IssuerMetadata),
        ("jwks", Keys),
        ("register", Registration),
        ("authorize", Authorization),
        ("oauth_callback", LoginCallback),
        ("consent", Consent),
        ("token", Tokens),
        ("revoke", Revocation),
    ]
    return web.Application(
        [(f"{settings.prefix}{pattern}", handler) for pattern, handler in routes],
        state=open_state(settings),
        sessions=Sessions(),
        http=relay_client(),
        log_function=_log,
    )


async def close_application(application: web.Application) -> None:
    """Close connections and the database."""
    state = application.settings["state"]
    await application.settings["http"].aclose()
    await state.hub.close()
    state.tokens.close()


def _log(handler: web.RequestHandler) -> None:
    """Log a request without its query, which may contain a code."""
    status, request = handler.get_status(), handler.request
    level = access_log.warning if status >= 500 else access_log.info
    level("%s %s %s %.0f ms", status, request.method, request.path, 1000 * request.request_time())


async def _serve(settings: HubSettings) -> None:
    application = make_application(settings)
    server = HTTPServer(application, xheaders=True, max_buffer_size=MAX_BODY_BYTES)
    server.listen(settings.port, settings.host)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    print(f"MCP for the users of {settings.hub_url} at {settings.base}/mcp", file=sys.stderr)
    await stop.wait()
    server.stop()
    await close_application(application)


def run(settings: HubSettings) -> int:
    """Serve until a signal; return the exit status."""
    asyncio.run(_serve(settings))
    return 0
