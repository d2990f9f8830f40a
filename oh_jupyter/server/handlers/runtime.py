"""State of a runtime: skills, the last page, confirmations, checkpoints, VS Code."""

from __future__ import annotations

import base64
import json
from typing import Any

from tornado import web

from oh_jupyter.errors import ExtensionMissingError, WireError
from oh_jupyter.operations import from_json
from oh_jupyter.operations.actions import Confirm, Confirmations
from oh_jupyter.operations.changes import Checkpoints, Decisions, MarkCheckpoint, Rewind
from oh_jupyter.operations.runtime import Page, Skills, Vscode, VSCodeAddress
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.routes import (
    EXECUTE_ACTIONS,
    READ_ACTIONS,
    READ_EVENTS,
    RouteTable,
    send_body,
    send_nothing,
)
from oh_jupyter.server.links import Reply

NOT_OVER_REST = (
    "Actions are approved in JupyterLab's panel or with %oh_confirm in the notebook, not over "
    "REST, where an agent could approve its own. c.OhJupyter.confirmation_over_rest = True in the "
    "server's configuration allows it; rejecting is always possible"
)
NO_PROXY = "pip install jupyter-server-proxy into the server's environment, and restart the server"

_MARK_FIELDS = (
    *("url", "open_pages_urls", "active_page_index", "focused_element_bid"),
    *("last_browser_action", "last_browser_action_error", "extra_element_properties"),
)

routes = RouteTable()


def _decision(handler: OhHandler, event_id: str) -> Confirm:
    """Return a person's decision on a waiting Action: ``{"approve": true}``, or false.

    The agent gets the ``reason`` of a rejection; an approval with ``for_session`` covers later
    Actions of the type that wait for the same reasons, one with ``for_workspace`` also those of
    later sessions, and the ``values`` answer a question. The caller may be the agent itself, if it
    has the server's token, so a setting must allow approval. JupyterLab's panel decides through
    the kernel instead.
    """
    if handler.by_session_key:
        raise web.HTTPError(403, "An agent cannot confirm its own actions")
    body = handler.json_object("approve", "reason", "why", "for_session", "for_workspace", "values")
    if not isinstance(body.get("approve"), bool):
        raise WireError('The body must be {"approve": true} or {"approve": false}', "approve")
    if body["approve"] and not handler.state.confirmation_over_rest:
        raise web.HTTPError(403, NOT_OVER_REST)
    if "why" in body:
        body.setdefault("reason", body.pop("why"))
    return Confirm.from_fields({"id": int(event_id), "by": "REST", **body})


def _page(reply: Reply) -> dict[str, Any]:
    return dict(json.loads(reply.body or b"{}")["extras"])


def _send_marks(handler: OhHandler, reply: Reply) -> None:
    page = _page(reply)
    handler.finish_json({name: page.get(name) for name in _MARK_FIELDS})


routes.forward("GET /skills", READ_ACTIONS, "listSkills", Skills)
routes.forward("GET /browser/marks", READ_EVENTS, "marks", Page, _send_marks, load=False)
_CONFIRM = r"POST /confirmations/(?P<event_id>\d{1,15})"
_CONFIRMING = ("execute", "oh_jupyter:confirmations")
routes.forward(_CONFIRM, _CONFIRMING, "confirm", _decision, send_nothing, load=False)
routes.forward("GET /decisions", READ_EVENTS, "listDecisions", Decisions)
routes.forward("GET /checkpoints", READ_EVENTS, "listCheckpoints", Checkpoints)
routes.forward("POST /checkpoints", EXECUTE_ACTIONS, "markCheckpoint", MarkCheckpoint)
routes.forward("POST /rewind", EXECUTE_ACTIONS, "rewind", Rewind)


@routes.add("GET /browser/(?P<kind>screenshot|set_of_marks)", READ_EVENTS, "screenshot")
async def screenshot(handler: OhHandler, kind: str, kernel_id: str | None = None) -> None:
    """Send a picture of the last page as PNG."""
    link = await handler.link(kernel_id)
    picture = str(_page(await link.request(Page(), load=False)).get(kind) or "")
    if not picture:
        raise web.HTTPError(404, f"The last page has no {kind}")
    handler.set_header("Cache-Control", "no-store")
    data = base64.b64decode(picture.partition(",")[2])
    handler.finish(data, set_content_type="image/png")


@routes.add("GET /confirmations", READ_EVENTS, "listConfirmations")
async def confirmations(handler: OhHandler, kernel_id: str | None = None) -> None:
    """List id, message, reasons, diff and remaining seconds of each waiting Action.

    Frontends poll every kernel: none is started, and nothing is loaded into it. A kernel without
    oh_jupyter has no Actions.
    """
    await handler.check_kernel(kernel_id)
    router = handler.state.router
    kernel_id = await handler.kernel_of(kernel_id) or router.default_kernel_id
    if kernel_id is None:
        handler.finish_json([])
        return
    try:
        reply = await router.link(kernel_id).request(Confirmations(), load=False)
    except ExtensionMissingError:
        if handler.flag("if_loaded"):
            raise
        handler.finish_json([])
        return
    send_body(handler, reply)


async def _vscode_address(handler: OhHandler, kernel_id: str | None) -> VSCodeAddress:
    """Return the address of a kernel's VS Code.

    Starts the default kernel only if its settings enable the plugin.
    """
    wanted = handler.state.wants_vscode
    if kernel_id is None and not wanted and handler.state.router.default_kernel_id is None:
        return VSCodeAddress()
    link = await handler.link(kernel_id)
    try:
        load = kernel_id is None and wanted
        reply = await handler.ask_kernel(link, Vscode(), load=load)
    except ExtensionMissingError:
        return VSCodeAddress()
    return from_json(VSCodeAddress, json.loads(reply.body or b"{}"))


@routes.add("GET /vscode", EXECUTE_ACTIONS, "vscode")
async def vscode(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Send ``{"url": ..., "token": ..., "problem": ...}``, with null for what is missing."""
    address = await _vscode_address(handler, kernel_id)
    url, problem = address.url, address.problem
    extensions = handler.serverapp.extension_manager.extensions if handler.serverapp else {}
    if url and "jupyter_server_proxy" not in extensions:
        url, problem = None, f"VS Code runs, but the server has no proxy to it: {NO_PROXY}"
    elif not url and not problem:
        problem = "The plugin 'vscode' is not among the settings' plugins"
    handler.finish_json({"url": url, "token": address.token, "problem": problem})


# The token allows executing anything.
@routes.add("GET /vscode/connection_token", EXECUTE_ACTIONS, "vscodeToken")
async def vscode_token(handler: OhHandler, kernel_id: str | None = None) -> None:
    """Send ``{"token": "<uuid>"}``, or null if VS Code does not run, as OpenHands expects."""
    handler.finish_json({"token": (await _vscode_address(handler, kernel_id)).token})
